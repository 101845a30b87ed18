// Tracks the memory of one evaluation: buffers, the tensors that view them, copies and launches in order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Memory.h"
#include <algorithm>
#include <fmt/format.h>

namespace kpkg::plan {

static constexpr size_t maxTensors = 1u << 14;
static constexpr size_t maxSteps = 1u << 14;
static constexpr size_t maxLaunchArgs = 1u << 16; // of all launches together
static constexpr size_t maxOverlapChecks = 1u << 16;
static constexpr uint32_t maxCopyChain = 64;

Memory::Memory(Resolution &resolution, Storage &storage)
    : resolution(resolution), buffers(storage.buffers), tensors(storage.tensors) {
  buffers.clear();
  tensors.clear();
}

bool Memory::fail(std::string text, int32_t blame) {
  message = std::move(text);
  argument = blame;
  return false;
}

bool Memory::failLimit(std::string text) {
  isLimit = true;
  return fail(std::move(text));
}

/// Returns why there are no tensors of the dtype; empty if there are. Elements of less than a byte have no address.
static std::string reasonAgainst(DType dtype) {
  if (dtypeBits(dtype) == 0)
    return "it has no dtype";
  if (dtypeBits(dtype) < 8)
    return fmt::format("there are no tensors of {}: store words of an integer dtype", dtypeName(dtype));
  return "";
}

bool viewOfArgument(const TensorMeta &meta, View &view, std::string &why) {
  why = reasonAgainst(meta.dtype);
  if (!why.empty())
    return false;
  if (meta.rank < 0 || meta.rank > maxRank) {
    why = fmt::format("rank {}, expected 0 to {}", meta.rank, maxRank);
    return false;
  }
  view = View();
  view.dtype = meta.dtype;
  view.rank = meta.rank;
  if (meta.rank > 0)
    std::copy_n(meta.shape, meta.rank, view.shape.begin());
  int64_t count, least, greatest;
  if (!checkedCount(view.shapeSpan(), count)) {
    why = fmt::format("shape {} is negative or too large", describeShape(view.shapeSpan()));
    return false;
  }
  if (!meta.strides)
    setContiguous(view);
  else if (meta.rank > 0)
    std::copy_n(meta.strides, meta.rank, view.strides.begin());
  if (view.numel() == 0)
    return true;
  // The same limit as for counts, so that byte offsets and their differences fit.
  constexpr int64_t limit = INT64_MAX / 16;
  if (!offsetRange(view, least, greatest) || least < -limit || greatest > limit) {
    why = fmt::format("strides {} reach too far", describeShape(view.stridesSpan()));
    return false;
  }
  return true;
}

bool Memory::add(const BufferState &buffer, TensorId &id) {
  if (tensors.size() >= maxTensors)
    return failLimit(fmt::format("more than {} tensors", maxTensors));
  buffers.push_back(buffer);
  buffers.back().whole.buffer = static_cast<int32_t>(buffers.size() - 1);
  id = static_cast<TensorId>(tensors.size());
  tensors.push_back(buffers.back().whole);
  return true;
}

std::string Memory::BufferState::text() const {
  return place.element < 0 ? std::string(name) : fmt::format("{}[{}]", name, place.element);
}

bool Memory::addArgument(const TensorMeta &meta, const ArgumentPlace &place, std::string_view name, bool isMut,
                         TensorId &id) {
  BufferState buffer;
  buffer.kind = Buffer::Kind::Argument;
  buffer.place = place;
  buffer.name = name;
  buffer.isMut = isMut;
  buffer.dtype = meta.dtype;
  std::string why;
  if (!viewOfArgument(meta, buffer.whole, why))
    return fail(fmt::format("argument `{}`: {}", buffer.text(), why), place.declared);
  if (buffer.whole.numel() > 0)
    offsetRange(buffer.whole, buffer.least, buffer.greatest);
  buffer.version = 1;
  return add(buffer, id);
}

bool Memory::allocate(std::span<const int64_t> shape, DType dtype, TensorId &id) {
  int64_t count;
  if (shape.size() > maxRank || !checkedCount(shape, count))
    return fail(
        fmt::format("empty: shape {} is negative, too large or of rank above {}", describeShape(shape), maxRank));
  if (std::string why = reasonAgainst(dtype); !why.empty())
    return fail("empty: " + why);
  BufferState buffer;
  buffer.isMut = true;
  buffer.dtype = dtype;
  buffer.whole.dtype = dtype;
  buffer.whole.rank = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), buffer.whole.shape.begin());
  setContiguous(buffer.whole);
  buffer.greatest = buffer.whole.numel() - 1;
  return add(buffer, id);
}

bool Memory::addView(const View &view, TensorId &id) {
  const BufferState &buffer = buffers[static_cast<size_t>(view.buffer)];
  int64_t least, greatest;
  // Every view operation guarantees this. A mistake there must not become an access outside the memory.
  if (view.numel() > 0 && (!offsetRange(view, least, greatest) || least < buffer.least || greatest > buffer.greatest))
    return fail(fmt::format("internal error: the view {} leaves its memory", describeView(view)));
  if (tensors.size() >= maxTensors)
    return failLimit(fmt::format("more than {} tensors", maxTensors));
  id = static_cast<TensorId>(tensors.size());
  tensors.push_back(view);
  return true;
}

bool Memory::addCopy(View source, TensorId &id) {
  uint32_t copies = bufferOf(source).copies + 1;
  if (copies > maxCopyChain)
    return failLimit(fmt::format("more than {} copies of copies", maxCopyChain));
  TensorId origin;
  if (!addView(source, origin) || !allocate(source.shapeSpan(), source.dtype, id))
    return false;
  buffers.back().origin = origin;
  buffers.back().copies = copies;
  return true;
}

const Memory::BufferState &Memory::rootOf(const View &view) const {
  const BufferState *buffer = &buffers[static_cast<size_t>(view.buffer)];
  while (buffer->origin >= 0)
    buffer = &buffers[static_cast<size_t>(tensors[static_cast<size_t>(buffer->origin)].buffer)];
  return *buffer;
}

int32_t Memory::argumentOf(TensorId id) const { return id < 0 ? -1 : rootOf(view(id)).place.declared; }

bool Memory::isWholeArgument(TensorId id) const {
  if (id < 0)
    return false;
  const View &v = view(id);
  const BufferState &buffer = buffers[static_cast<size_t>(v.buffer)];
  return buffer.kind == Buffer::Kind::Argument && v.offset == 0 &&
         std::ranges::equal(v.shapeSpan(), buffer.whole.shapeSpan()) &&
         std::ranges::equal(v.stridesSpan(), buffer.whole.stridesSpan());
}

std::string Memory::describe(TensorId id) const {
  if (id < 0)
    return "None";
  const View &v = view(id);
  return isWholeArgument(id) ? fmt::format("`{}` ({})", buffers[static_cast<size_t>(v.buffer)].text(), describeView(v))
                             : describeView(v);
}

//===--- Steps ----------------------------------------------------------------------------------------------------===//

View Memory::emitted(const View &view) {
  BufferState &buffer = bufferOf(view);
  if (buffer.emitted < 0) {
    buffer.emitted = static_cast<int32_t>(resolution.buffers.size());
    int64_t bytes = buffer.kind == Buffer::Kind::Argument ? 0 : dtypeBytes(buffer.dtype, buffer.whole.numel());
    const ArgumentPlace &place = buffer.place;
    resolution.buffers.push_back(
        {buffer.kind, place.index, bytes, 0, place.element < 0 ? -1 : place.declared, place.element});
  }
  View result = view;
  result.buffer = buffer.emitted;
  return result;
}

bool Memory::emitCopy(const View &source, const View &destination) {
  if (source.numel() == 0)
    return true;
  if (resolution.steps.size() >= maxSteps)
    return failLimit(fmt::format("more than {} steps", maxSteps));
  View from = emitted(source);
  resolution.steps.push_back(CopyStep{from, emitted(destination)});
  return true;
}

bool Memory::beforeRead(const View &view) {
  BufferState &buffer = bufferOf(view);
  if (buffer.origin < 0)
    return true;
  const View origin = this->view(buffer.origin);
  if (!beforeRead(origin))
    return false;
  uint32_t version = bufferOf(origin).version;
  if (buffer.originVersion == version) // both 0: the contents are undefined there too
    return true;
  buffer.originVersion = version;
  ++buffer.version;
  return emitCopy(origin, buffer.whole);
}

bool Memory::afterWrite(const View &view) {
  BufferState &buffer = bufferOf(view);
  ++buffer.version;
  if (buffer.origin < 0)
    return true;
  const View origin = this->view(buffer.origin);
  if (!emitCopy(buffer.whole, origin) || !afterWrite(origin))
    return false;
  buffer.originVersion = bufferOf(origin).version;
  return true;
}

bool Memory::checkWritable(const View &view, std::string_view kernel) {
  const BufferState &root = rootOf(view);
  if (!root.isMut)
    return fail(fmt::format("launch of {}: it writes `{}`, which is not `mut`", kernel, root.text()),
                root.place.declared);
  for (View v = view;; v = this->view(bufferOf(v).origin)) {
    if (mayOverlapItself(v))
      return fail(fmt::format("launch of {}: it writes {} with strides {}, whose elements share memory", kernel,
                              describeView(v), describeShape(v.stridesSpan())),
                  root.place.declared);
    if (bufferOf(v).origin < 0)
      return true;
  }
}

bool Memory::checkDisjoint(const LaunchStep &step, std::span<const TensorId> ids) {
  // A copy counts as its source: whether strides allow a view must not decide whether a call is valid.
  auto region = [&](TensorId id) {
    View v = view(id);
    while (bufferOf(v).origin >= 0)
      v = view(bufferOf(v).origin);
    return v;
  };
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || !step.args[i].isMut)
      continue;
    View written = region(ids[i]);
    for (size_t k = 0; k < ids.size(); ++k) {
      if (k == i || ids[k] < 0)
        continue;
      View other = region(ids[k]);
      if (++overlapChecks > maxOverlapChecks)
        return failLimit("too many arguments of launches to compare");
      if (other.buffer == written.buffer && mayOverlap(written, other, 0))
        return fail(fmt::format("launch of {}: argument {}, which it writes, shares memory with argument {}",
                                step.kernel, i, k),
                    bufferOf(written).place.declared);
    }
  }
  return true;
}

/// Sets the strides of dimensions with extent 1 to those of a dense tensor, so that facts about strides hold for them.
static void settleStrides(View &view) {
  int64_t dense = 1;
  for (int i = view.rank - 1; i >= 0; --i) {
    if (view.shape[i] <= 1)
      view.strides[i] = dense;
    dense *= std::max<int64_t>(view.shape[i], 1);
  }
}

bool Memory::launch(LaunchStep step, std::span<const TensorId> ids) {
  if (resolution.steps.size() >= maxSteps)
    return failLimit(fmt::format("more than {} steps", maxSteps));
  if ((launchArgs += step.args.size() + step.params.size()) > maxLaunchArgs)
    return failLimit(fmt::format("launches with more than {} arguments together", maxLaunchArgs));
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= 0 && step.args[i].isMut && !checkWritable(view(ids[i]), step.kernel))
      return false;
  if (!checkDisjoint(step, ids))
    return false;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0)
      continue;
    const View v = view(ids[i]);
    if (!beforeRead(v))
      return false;
    step.args[i].view = emitted(v);
    settleStrides(step.args[i].view);
  }
  std::vector<TensorId> written;
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= 0 && step.args[i].isMut)
      written.push_back(ids[i]);
  resolution.steps.push_back(std::move(step));
  return std::ranges::all_of(written, [&](TensorId id) { return afterWrite(view(id)); });
}

bool Memory::output(TensorId id) {
  if (id < 0) {
    resolution.outputs.emplace_back();
    return true;
  }
  View v = view(id);
  if (!beforeRead(v))
    return false;
  if (bufferOf(v).kind == Buffer::Kind::Argument || bufferOf(v).isOutput) {
    TensorId fresh;
    if (!allocate(v.shapeSpan(), v.dtype, fresh) || !emitCopy(v, view(fresh)))
      return false;
    v = view(fresh);
  }
  bufferOf(v).isOutput = true;
  View result = emitted(v);
  resolution.buffers[static_cast<size_t>(result.buffer)].kind = Buffer::Kind::Result;
  resolution.outputs.push_back(result);
  return true;
}

bool Memory::finish() {
  int64_t at = 0;
  for (Buffer &buffer : resolution.buffers) {
    if (buffer.kind != Buffer::Kind::Temporary)
      continue;
    buffer.offset = at;
    if (__builtin_add_overflow(at, (buffer.bytes + 63) / 64 * 64, &at))
      return failLimit("temporaries need more memory than can be addressed");
  }
  resolution.temporaryBytes = at;
  return true;
}

} // namespace kpkg::plan
