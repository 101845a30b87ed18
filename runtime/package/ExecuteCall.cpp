// Runs a planned call: results, argument words, copies and launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/LastError.h"
#include "runtime/package/Log.h"
#include "runtime/package/PlannedCall.h"
#include "runtime/package/Profile.h"

#include <algorithm>
#include <cstring>

namespace kpkg::package {

using plan::Buffer;

namespace {
/// The first byte of a view's elements, and the end of the last one.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool overlaps(const ByteRange &other) const { return begin < other.end && other.begin < end; }
};
} // namespace

static ByteRange rangeOf(const kpkg_tensor &tensor) {
  int64_t lowest = 0, highest = 0, dense = 1;
  for (int32_t d = tensor.rank; d-- > 0;) {
    if (tensor.shape[d] == 0)
      return {};
    int64_t reach = (tensor.shape[d] - 1) * (tensor.strides ? tensor.strides[d] : dense);
    (reach < 0 ? lowest : highest) += reach;
    dense *= tensor.shape[d];
  }
  plan::DType dtype = plan::DType(tensor.dtype);
  uint64_t data = reinterpret_cast<uint64_t>(tensor.data);
  return {data + uint64_t(plan::dtypeBytes(dtype, lowest)), data + uint64_t(plan::dtypeBytes(dtype, highest + 1))};
}

/// Returns whether no two elements share memory: each stride is beyond the extent of the smaller ones. It also refuses
/// a few unusual layouts.
static bool isInjective(const kpkg_tensor &tensor) {
  std::array<std::pair<int64_t, int64_t>, KPKG_MAX_RANK> dims;
  size_t count = 0;
  for (int32_t d = 0; d < tensor.rank; ++d)
    if (tensor.shape[d] > 1)
      dims[count++] = {std::abs(tensor.strides[d]), tensor.shape[d]};
  std::sort(dims.begin(), dims.begin() + count);
  int64_t reach = 0;
  for (size_t d = 0; d < count; ++d) {
    if (dims[d].first <= reach)
      return false;
    reach += dims[d].first * (dims[d].second - 1);
  }
  return true;
}

namespace {
/// Memory of a device for the duration of a call, in stream order.
class CallMemory {
public:
  CallMemory(device::Device &device, device::Stream stream) : device(device), stream(stream) {}
  CallMemory(const CallMemory &) = delete;
  CallMemory &operator=(const CallMemory &) = delete;
  ~CallMemory() {
    for (std::byte *block : blocks)
      static_cast<void>(device.release(block, stream)); // a destructor cannot report errors
  }
  /// Takes the thread's own block where the host's memory is the device's, which saves an allocation.
  Result<std::byte *> get(size_t bytes, AlignedBlock &ofThread) {
    if (device.traits().hasHostMemory) {
      std::byte *block = ofThread.get(bytes);
      return block ? Result<std::byte *>(block) : Error{KPKG_ERROR_MEMORY, "out of memory", {}, {}, {}};
    }
    auto block = device.allocate(bytes, stream);
    if (block)
      blocks.push_back(*block);
    return block;
  }

private:
  device::Device &device;
  device::Stream stream;
  std::vector<std::byte *> blocks;
};
} // namespace

/// The source of a result's memory in this call.
namespace {
struct OutputPlace {
  /// Null: memory from the allocator.
  const kpkg_tensor *output = nullptr;
  bool direct = false;
};
} // namespace

static Error outputError(const OpEntry &op, size_t index, const std::string &what) {
  return {KPKG_ERROR_KERNEL, op.name + ": output " + std::to_string(index) + " " + what, op.name, {}, {}};
}

static Error memoryError(const OpEntry &op, const Error &error, const std::string &purpose) {
  return {error.status, op.name + ": no memory for " + purpose + ": " + error.message, op.name, {}, {}};
}

static std::string shapeText(const int64_t *shape, int32_t rank) {
  std::string text = "[";
  for (int32_t d = 0; d < rank; ++d)
    text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

/// Checks the caller's memory for a result, and whether kernels may write it directly.
static Result<OutputPlace> placeOutput(const PlannedCall &planned, size_t index, const OpEntry &op, const Frame &frame,
                                       const kpkg_call &call) {
  const PlannedResult &expected = planned.results[index];
  const kpkg_result &result = expected.result;
  const kpkg_tensor &output = *call.outputs[index];
  if (result.kind != KPKG_TENSOR)
    return outputError(op, index, "is given, but the result is None");
  const device::Traits &traits = planned.device->traits();
  if (output.device.type != frame.device.type || (!traits.isSingle && output.device.index != frame.device.index))
    return outputError(op, index, "is not on the device of the arguments");
  if (output.dtype != result.dtype)
    return outputError(op, index,
                       "is " + std::string(plan::dtypeName(plan::DType(output.dtype))) + ", the result is " +
                           std::string(plan::dtypeName(plan::DType(result.dtype))));
  if (output.rank != result.rank || (output.rank > 0 && !output.shape) ||
      !std::equal(result.shape, result.shape + result.rank, output.shape))
    return outputError(op, index,
                       "has shape " + (output.shape || !output.rank ? shapeText(output.shape, output.rank) : "?") +
                           ", the result has " + shapeText(result.shape, result.rank));
  OutputPlace place{&output, result.whole != 0};
  if (traits.plansByAlignment) // the plan relies on it
    place.direct &= reinterpret_cast<uint64_t>(output.data) % uint64_t(addressAlignment) == 0;
  int64_t dense = 1;
  for (int32_t d = result.rank; d-- > 0;) {
    int64_t stride = output.strides ? output.strides[d] : dense;
    place.direct &= result.shape[d] <= 1 || stride == result.strides[d];
    dense *= result.shape[d];
  }
  if (dense > 0 && !output.data)
    return outputError(op, index, "has no memory");
  if (output.strides && !isInjective(output))
    return outputError(op, index, "has elements that share memory");
  ByteRange range = rangeOf(output);
  for (size_t other = 0; other < index; ++other)
    if (call.outputs[other] && range.overlaps(rangeOf(*call.outputs[other])))
      return outputError(op, index, "shares memory with output " + std::to_string(other));
  for (const kpkg_value &value : frame.values)
    if (value.kind == KPKG_TENSOR && range.overlaps(rangeOf(*value.as.tensor)))
      place.direct = false;
  return place;
}

/// Fills frame.bases for result buffers, and call.results except the data pointers of indirect outputs.
static Status placeResults(const PlannedCall &planned, const OpEntry &op, Frame &frame, kpkg_call &call,
                           std::vector<OutputPlace> &places, CallMemory &memory) {
  int32_t allocations = 0;
  size_t detourBytes = 0;
  for (size_t i = 0; i < planned.results.size(); ++i) {
    const PlannedResult &expected = planned.results[i];
    kpkg_result &result = call.results[i];
    result = expected.result;
    if (call.outputs && call.outputs[i]) {
      auto place = placeOutput(planned, i, op, frame, call);
      if (!place)
        return place.error();
      places.resize(planned.results.size());
      places[i] = *place;
      if (!place->direct)
        detourBytes += size_t(expected.bytes + 63) / 64 * 64;
    }
  }
  std::byte *detour = nullptr;
  if (detourBytes) {
    auto block = memory.get(detourBytes, frame.detour);
    if (!block)
      return memoryError(op, block.error(), "an output that cannot be written in place");
    detour = *block;
  }
  for (size_t i = 0; i < planned.results.size(); ++i) {
    const PlannedResult &expected = planned.results[i];
    kpkg_result &result = call.results[i];
    if (result.kind != KPKG_TENSOR)
      continue;
    std::byte *&base = frame.bases[size_t(expected.buffer)];
    if (i < places.size() && places[i].output) {
      const kpkg_tensor &output = *places[i].output;
      result.source = KPKG_FROM_OUTPUT;
      result.index = int32_t(i);
      result.offset = 0;
      result.whole = 1;
      result.data = output.data;
      if (output.strides)
        std::copy_n(output.strides, output.rank, result.strides);
      else
        for (int64_t d = output.rank, dense = 1; d-- > 0; dense *= output.shape[d] > 0 ? output.shape[d] : 1)
          result.strides[d] = dense;
      if (places[i].direct) {
        base = static_cast<std::byte *>(output.data);
      } else {
        base = detour;
        detour += size_t(expected.bytes + 63) / 64 * 64;
      }
      continue;
    }
    if (!call.allocate)
      return Error{KPKG_ERROR_USE,
                   op.name + ": the call has neither an allocator nor an output for result " + std::to_string(i),
                   op.name,
                   {},
                   {}};
    kpkg_allocation wanted = {sizeof wanted, allocations,           expected.rank,           result.dtype,
                              result.device, expected.shape.data(), expected.strides.data(), size_t(expected.bytes)};
    void *data = nullptr;
    if (kpkg_status status = call.allocate(call.allocate_context, &wanted, &data); status != KPKG_OK) {
      Error error = lastError();
      if (error.status != status)
        error = {status, "the allocator of the caller failed", {}, {}, {}};
      return error;
    }
    if (!data && expected.bytes > 0)
      return Error{KPKG_ERROR_MEMORY, op.name + ": the allocator of the caller gave no memory", op.name, {}, {}};
    base = static_cast<std::byte *>(data);
    result.index = allocations++;
    result.data = base + plan::dtypeBytes(plan::DType(result.dtype), result.offset);
  }
  return {};
}

static Status checkAddresses(const OpEntry &op, const Frame &frame) {
  for (size_t i = 0; i < frame.values.size(); ++i) {
    if (frame.values[i].kind != KPKG_TENSOR)
      continue;
    const plan::TensorMeta &meta = frame.arguments[i].tensor;
    uint64_t address = frame.addresses[i];
    const char *what = nullptr;
    if (!address) {
      int64_t count = 1;
      for (int32_t d = 0; d < meta.rank; ++d)
        count *= meta.shape[d];
      if (count != 0)
        what = "has no memory";
    } else if (address % uint64_t(plan::dtypeBytes(meta.dtype)) != 0)
      what = "is not aligned to its element size";
    if (what)
      return frame.argumentError(op, i, what);
  }
  return {};
}

static Error launchError(const PlannedLaunch &planned, const OpEntry &op, const Error &error) {
  return {error.status,
          op.name + ": " + planned.instance->label + ": " + error.message,
          op.name,
          planned.instance->label,
          {}};
}

static Status runLaunch(const PlannedLaunch &planned, const OpEntry &op, int64_t *words, device::Stream stream) {
  planned.use->launches.fetch_add(1, std::memory_order_relaxed);
  device::LaunchReport report;
  if (Status status = planned.launch->run(words, stream, report); !status) [[unlikely]]
    return launchError(planned, op, status.error());
  if (report.lostMessages) [[unlikely]]
    log(KPKG_LOG_PRINT, "(" + std::to_string(report.lostMessages) + " more messages of " + planned.instance->label +
                            " are lost: the launch has no room for them)");
  if (report.failed == 0) [[likely]]
    return {};
  const auto &asserts = planned.instance->asserts;
  std::string what = report.failed > 0 && size_t(report.failed) <= asserts.size()
                         ? "assertion failed: " + asserts[size_t(report.failed) - 1]
                         : "failed with code " + std::to_string(report.failed);
  return launchError(planned, op, Error{KPKG_ERROR_KERNEL, what, {}, {}, {}});
}

/// Fills frame.bases for arguments and temporaries. placeResults() adds the results.
static void placeBuffers(const PlannedCall &planned, Frame &frame, std::byte *temporaries) {
  frame.bases.resize(planned.buffers.size());
  for (size_t i = 0; i < planned.buffers.size(); ++i) {
    const Buffer &buffer = planned.buffers[i];
    if (buffer.kind == Buffer::Kind::Argument)
      frame.bases[i] = reinterpret_cast<std::byte *>(frame.addresses[size_t(buffer.argument)]);
    else
      frame.bases[i] = buffer.kind == Buffer::Kind::Temporary ? temporaries + buffer.offset : nullptr;
  }
}

/// Fills frame.words with the argument words of all launches.
static void packWords(const PlannedCall &planned, Frame &frame) {
  frame.words.resize(planned.words.size());
  if (!planned.words.empty())
    std::memcpy(frame.words.data(), planned.words.data(), planned.words.size() * sizeof(int64_t));
  for (const PointerPatch &patch : planned.pointers)
    frame.words[patch.word] = reinterpret_cast<int64_t>(frame.bases[size_t(patch.buffer)]) + patch.byteOffset;
  for (const ScalarPatch &patch : planned.scalars) {
    const plan::Argument &argument = frame.arguments[patch.argument];
    frame.words[patch.word] = argument.kind == plan::Argument::Kind::Float ? packScalar(argument.real, patch.dtype)
                                                                           : packScalar(argument.integer, patch.dtype);
  }
}

static Status runSteps(const PlannedCall &planned, const OpEntry &op, Frame &frame, device::Stream stream) {
  for (const PlannedStep &step : planned.steps) {
    if (step.copy < 0) {
      int64_t *words = frame.words.data() + step.launch.firstWord;
      std::optional<ProfiledLaunch> recorded;
      if (isProfiling()) [[unlikely]]
        recorded.emplace(op.name, step.launch, *planned.device, stream);
      if (Status status = runLaunch(step.launch, op, words, stream); !status)
        return status;
      continue;
    }
    const auto &[from, to] = planned.copySteps[size_t(step.copy)];
    int64_t bytes = plan::dtypeBytes(from.dtype);
    device::StridedCopy copy = {frame.bases[size_t(from.buffer)] + from.offset * bytes,
                                from.stridesSpan(),
                                frame.bases[size_t(to.buffer)] + to.offset * bytes,
                                to.stridesSpan(),
                                from.shapeSpan(),
                                bytes};
    if (Status status = planned.device->copyStrided(copy, stream); !status)
      return status;
  }
  return {};
}

/// Copies results to the outputs that could not be written in place.
static Status copyToOutputs(const PlannedCall &planned, const Frame &frame, const kpkg_call &call,
                            const std::vector<OutputPlace> &places, CallCosts &costs) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (!places[i].output || places[i].direct)
      continue;
    const kpkg_result &made = planned.results[i].result;
    kpkg_result &result = call.results[i];
    size_t rank = size_t(made.rank), bytes = size_t(plan::dtypeBytes(plan::DType(made.dtype)));
    device::StridedCopy copy = {frame.bases[size_t(planned.results[i].buffer)] + made.offset * int64_t(bytes),
                                {made.strides, rank},
                                static_cast<std::byte *>(result.data),
                                {result.strides, rank},
                                {made.shape, rank},
                                int64_t(bytes)};
    if (Status status = planned.device->copyStrided(copy, call.stream); !status)
      return status;
    ++costs.copies;
    costs.copiedBytes += uint64_t(planned.results[i].bytes);
  }
  return {};
}

Status execute(const PlannedCall &planned, const OpEntry &op, Frame &frame, kpkg_call &call, CallCosts &costs) {
  if (Status status = checkAddresses(op, frame); !status)
    return status;
  device::Device &device = *planned.device;
  device::Scope scope(device);
  if (!scope.ok())
    return scope.error();
  CallMemory memory(device, call.stream);
  std::byte *temporaries = nullptr;
  if (planned.temporaryBytes) {
    auto block = memory.get(size_t(planned.temporaryBytes), frame.temporaries);
    if (!block)
      return memoryError(op, block.error(), std::to_string(planned.temporaryBytes) + " bytes of temporaries");
    temporaries = *block;
  }
  placeBuffers(planned, frame, temporaries);
  std::vector<OutputPlace> places;
  if (Status status = placeResults(planned, op, frame, call, places, memory); !status)
    return status;
  packWords(planned, frame);
  if (Status status = runSteps(planned, op, frame, call.stream); !status)
    return status;
  costs.copies = planned.copies;
  costs.copiedBytes = planned.copiedBytes;
  return copyToOutputs(planned, frame, call, places, costs);
}

} // namespace kpkg::package
