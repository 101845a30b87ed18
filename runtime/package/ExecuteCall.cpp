// Runs a planned call: results, argument words, copies and launches, on the host or on a GPU's stream.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/Grid.h"
#include "runtime/device/cpu/StridedCopy.h"
#include "runtime/device/cuda/Counters.h"
#include "runtime/device/cuda/StridedCopy.h"
#include "runtime/package/GpuReport.h"
#include "runtime/package/LastError.h"
#include "runtime/package/Log.h"
#include "runtime/package/PlannedCall.h"
#include "runtime/package/PrintFormat.h"
#include "runtime/package/Profile.h"

#include <algorithm>
#include <cstring>

namespace kpkg::package {

using plan::Buffer;

/// Limit of words for a kernel's arguments and its grid. CUDA allows 4096 bytes.
static constexpr size_t maxGpuParameters = 512;

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
  int64_t bytes = int64_t(kpkg_dtype_size(tensor.dtype));
  uint64_t data = reinterpret_cast<uint64_t>(tensor.data);
  return {data + uint64_t(lowest * bytes), data + uint64_t((highest + 1) * bytes)};
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
/// Memory of a GPU for the duration of a call, in stream order.
class DeviceMemory {
public:
  DeviceMemory(int32_t device, cuda::Stream stream) : device(device), stream(stream) {}
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  ~DeviceMemory() {
    for (uint64_t block : blocks)
      static_cast<void>(cuda::release(block, stream)); // a destructor cannot report errors
  }
  Result<std::byte *> get(int64_t bytes) {
    auto block = cuda::allocate(device, bytes, stream);
    if (!block)
      return block.error();
    blocks.push_back(*block);
    return reinterpret_cast<std::byte *>(*block);
  }

private:
  int32_t device;
  cuda::Stream stream;
  std::vector<uint64_t> blocks;
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
  if (output.device.type != frame.device.type ||
      (frame.device.type != KPKG_DEVICE_CPU && output.device.index != frame.device.index))
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
  if (planned.device.isCuda) // the plan relies on it
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
                           std::vector<OutputPlace> &places, DeviceMemory &memory) {
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
  if (detourBytes && planned.device.isCuda) {
    auto block = memory.get(int64_t(detourBytes));
    if (!block)
      return block.error();
    detour = *block;
  } else if (detourBytes) {
    detour = frame.detour.get(detourBytes);
  }
  if (detourBytes && !detour)
    return Error{
        KPKG_ERROR_MEMORY, op.name + ": no memory for an output that cannot be written in place", op.name, {}, {}};
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
    result.data = base + result.offset * plan::dtypeBytes(plan::DType(result.dtype));
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
      return Error{KPKG_ERROR_KERNEL,
                   op.name + ": argument '" + op.arguments[i].name + "' " + what,
                   op.name,
                   {},
                   op.arguments[i].name};
  }
  return {};
}

static void printFromKernel(void *context, int32_t format, const uint64_t *values, int32_t count) {
  const auto &prints = static_cast<const Instance *>(context)->prints;
  if (format >= 0 && size_t(format) < prints.size() && count >= 0)
    log(KPKG_LOG_PRINT, formatPrint(prints[size_t(format)], {values, size_t(count)}));
}

static Status runLaunch(const PlannedLaunch &planned, const OpEntry &op, const int64_t *words) {
  cpu::Launch launch;
  launch.kernel = planned.kernel;
  launch.call.args = words;
  std::copy_n(planned.grid, 3, launch.call.grid);
  if (planned.tileCount)
    launch.call.grid[0] = planned.tileCount(words);
  launch.call.print = printFromKernel;
  launch.call.printContext = const_cast<Instance *>(planned.instance);
  launch.scratchBytes = planned.instance->scratch;
  launch.workBytes = planned.workBytes;
  planned.use->launches.fetch_add(1, std::memory_order_relaxed);
  int32_t code = cpu::run(launch);
  if (code == 0)
    return {};
  const auto &asserts = planned.instance->asserts;
  std::string what = code > 0 && size_t(code) <= asserts.size() ? "assertion failed: " + asserts[size_t(code) - 1]
                                                                : "failed with code " + std::to_string(code);
  return Error{
      KPKG_ERROR_KERNEL, op.name + ": " + planned.instance->label + ": " + what, op.name, planned.instance->label, {}};
}

static Error launchError(const PlannedLaunch &planned, const OpEntry &op, const Error &error) {
  return {error.status,
          op.name + ": " + planned.instance->label + ": " + error.message,
          op.name,
          planned.instance->label,
          {}};
}

static Status runOnGpu(const PlannedLaunch &planned, int32_t device, const OpEntry &op, int64_t *words,
                       cuda::Stream stream) {
  if (planned.ctas[0] == 0 || planned.ctas[1] == 0 || planned.ctas[2] == 0)
    return {};
  planned.use->launches.fetch_add(1, std::memory_order_relaxed);
  // Every word is a separate parameter; the driver reads as many of its bytes as the parameter has.
  std::array<void *, maxGpuParameters> parameters;
  const size_t mapCount = planned.tensorMaps.size();
  if (planned.wordCount + sizeof(cuda::TensorMapValue) / sizeof(int64_t) * mapCount >= parameters.size())
    return Error{KPKG_ERROR_UNSUPPORTED,
                 op.name + ": " + planned.instance->label + " has too many parameters",
                 op.name,
                 planned.instance->label,
                 {}};
  for (size_t i = 0; i < planned.wordCount; ++i)
    parameters[i] = words + i;
  const LaunchShape &shape = *planned.instance->launch;
  cuda::Launch launch;
  launch.function = planned.function;
  std::copy_n(planned.ctas, 3, launch.grid);
  launch.threads = shape.threads;
  launch.sharedBytes = shape.shared;
  launch.overlaps = shape.overlaps;
  cuda::Counter counter; // held until the kernel is launched
  if (shape.counters) {
    auto given = cuda::counterFor(device, stream, shape.counters);
    if (!given)
      return launchError(planned, op, given.error());
    counter = std::move(*given);
    words[planned.wordCount - 1] = counter.number;
  }
  std::array<cuda::TensorMapValue, maxTensorMaps> maps;
  size_t firstMap = planned.wordCount + reports(*planned.instance);
  for (size_t i = 0; i < mapCount; ++i) {
    parameters[firstMap + i] = &maps[i];
    const PlannedTensorMap &map = planned.tensorMaps[i];
    if (!map.maps)
      maps[i] = {};
    else if (Status made = map.maps->at(uint64_t(words[map.word]), maps[i]); !made)
      return launchError(planned, op, made.error());
  }
  Status status;
  if (reports(*planned.instance)) {
    auto report = GpuReport::prepare(*planned.instance, device, stream);
    status = report ? Status() : Status(report.error());
    uint64_t address = report ? report->address() : 0;
    parameters[planned.wordCount] = &address;
    if (status)
      status = cuda::launch(launch, stream, parameters.data());
    if (status)
      status = report->finish();
  } else {
    status = cuda::launch(launch, stream, parameters.data());
  }
  return status ? Status() : launchError(planned, op, status.error());
}

/// Runs a copy step, or the final copy to an output that could not be written in place.
static Status copyElements(const PlannedCall &planned, const std::byte *from, std::span<const int64_t> fromStrides,
                           std::byte *to, std::span<const int64_t> toStrides, std::span<const int64_t> shape,
                           int64_t bytes, cuda::Stream stream) {
  if (planned.device.isCuda)
    return cuda::stridedCopy(reinterpret_cast<uint64_t>(from), fromStrides, reinterpret_cast<uint64_t>(to), toStrides,
                             shape, bytes, stream);
  cpu::stridedCopy(from, fromStrides, to, toStrides, shape, size_t(bytes));
  return {};
}

Status execute(const PlannedCall &planned, const OpEntry &op, Frame &frame, kpkg_call &call, CallCosts &costs) {
  if (Status status = checkAddresses(op, frame); !status)
    return status;
  std::optional<cuda::DeviceScope> scope;
  if (planned.device.isCuda) {
    scope.emplace(planned.device.index);
    if (!scope->status())
      return scope->status();
  }
  DeviceMemory memory(planned.device.index, call.stream);
  std::byte *temporaries = nullptr;
  if (planned.temporaryBytes && planned.device.isCuda) {
    auto block = memory.get(planned.temporaryBytes);
    if (!block)
      return block.error();
    temporaries = *block;
  } else if (planned.temporaryBytes && !(temporaries = frame.temporaries.get(size_t(planned.temporaryBytes))))
    return Error{KPKG_ERROR_MEMORY,
                 op.name + ": no memory for " + std::to_string(planned.temporaryBytes) + " bytes of temporaries",
                 op.name,
                 {},
                 {}};
  frame.bases.resize(planned.buffers.size());
  for (size_t i = 0; i < planned.buffers.size(); ++i) {
    const Buffer &buffer = planned.buffers[i];
    if (buffer.kind == Buffer::Kind::Argument)
      frame.bases[i] = reinterpret_cast<std::byte *>(frame.addresses[size_t(buffer.argument)]);
    else
      frame.bases[i] = buffer.kind == Buffer::Kind::Temporary ? temporaries + buffer.offset : nullptr;
  }
  std::vector<OutputPlace> places;
  if (Status status = placeResults(planned, op, frame, call, places, memory); !status)
    return status;

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

  for (const PlannedStep &step : planned.steps) {
    if (step.copy < 0) {
      int64_t *words = frame.words.data() + step.launch.firstWord;
      std::optional<ProfiledLaunch> recorded;
      if (isProfiling()) [[unlikely]]
        recorded.emplace(op.name, step.launch, planned.device, call.stream);
      Status status = planned.device.isCuda ? runOnGpu(step.launch, planned.device.index, op, words, call.stream)
                                            : runLaunch(step.launch, op, words);
      if (!status)
        return status;
      continue;
    }
    const auto &[from, to] = planned.copySteps[size_t(step.copy)];
    int64_t bytes = plan::dtypeBytes(from.dtype);
    if (Status status = copyElements(planned, frame.bases[size_t(from.buffer)] + from.offset * bytes,
                                     from.stridesSpan(), frame.bases[size_t(to.buffer)] + to.offset * bytes,
                                     to.stridesSpan(), from.shapeSpan(), bytes, call.stream);
        !status)
      return status;
  }
  costs.copies = planned.copies;
  costs.copiedBytes = planned.copiedBytes;

  for (size_t i = 0; i < places.size(); ++i) {
    if (!places[i].output || places[i].direct)
      continue;
    const kpkg_result &made = planned.results[i].result;
    kpkg_result &result = call.results[i];
    size_t rank = size_t(made.rank), bytes = size_t(plan::dtypeBytes(plan::DType(made.dtype)));
    if (Status status =
            copyElements(planned, frame.bases[size_t(planned.results[i].buffer)] + made.offset * int64_t(bytes),
                         {made.strides, rank}, static_cast<std::byte *>(result.data), {result.strides, rank},
                         {made.shape, rank}, int64_t(bytes), call.stream);
        !status)
      return status;
    ++costs.copies;
    costs.copiedBytes += uint64_t(planned.results[i].bytes);
  }
  return {};
}

} // namespace kpkg::package
