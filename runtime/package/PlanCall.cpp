// Converts a resolution to a planned call: instances, argument words, results.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Driver.h"
#include "runtime/package/Choice.h"
#include "runtime/package/PlannedCall.h"
#include "runtime/package/Windows.h"
#include "runtime/plan/Program.h"

#include <algorithm>

namespace kpkg::package {

using plan::LaunchArg;
using plan::LaunchStep;
using plan::View;

/// Operations that cost about as much as moving one byte, for deciding whether to wake other threads.
static constexpr double flopsPerByte = 4;

static int64_t bytesOf(const View &view) { return view.numel() * plan::dtypeBytes(view.dtype); }

static void packView(PlannedCall &planned, const View &view, const KernelArgument &argument) {
  size_t first = planned.words.size();
  planned.words.resize(first + argument.words());
  if (view.buffer < 0)
    return; // absent: all words 0
  planned.pointers.push_back({first, view.buffer, view.offset * plan::dtypeBytes(view.dtype)});
  for (int32_t d = 0; d < view.rank; ++d) {
    planned.words[first + 1 + size_t(d)] = view.shape[size_t(d)];
    planned.words[first + 1 + size_t(view.rank + d)] = view.strides[size_t(d)];
  }
}

static void packArguments(PlannedCall &planned, const LaunchStep &step, const Kernel &kernel,
                          const Instance &instance) {
  for (size_t i = 0; i < step.args.size(); ++i) {
    const LaunchArg &given = step.args[i];
    const KernelArgument &expected = kernel.args[i];
    plan::DType dtype = instance.dtypes[i];
    switch (given.kind) {
    case LaunchArg::Kind::View:
      packView(planned, given.view, expected);
      break;
    case LaunchArg::Kind::Float:
      planned.words.push_back(packScalar(given.real, dtype));
      break;
    case LaunchArg::Kind::Int:
    case LaunchArg::Kind::Bool:
      planned.words.push_back(packScalar(given.integer, dtype));
      break;
    case LaunchArg::Kind::PassThrough:
      planned.scalars.push_back({planned.words.size(), size_t(given.integer), dtype});
      planned.words.push_back(0);
      break;
    }
  }
}

/// Returns the shape of a tensor map. The choice has ensured that the driver accepts the view.
static cuda::TensorMapShape mapShape(const TensorMap &map, const View &view, const LaunchStep &step) {
  cuda::TensorMapShape shape;
  int64_t bytes = plan::dtypeBytes(view.dtype);
  shape.dtype = int32_t(view.dtype);
  shape.swizzle = map.swizzle;
  auto append = [&](int32_t d) {
    shape.extents[shape.rank] = uint64_t(view.shape[size_t(d)]);
    // The stride of a single coordinate is never used, but the driver checks it.
    shape.strides[shape.rank] = view.shape[size_t(d)] > 1 ? uint64_t(view.strides[size_t(d)] * bytes) : 16;
    shape.box[shape.rank++] = map.box[size_t(d)];
  };
  append(map.unit);
  for (int32_t d = view.rank; d-- > 0;)
    if (d != map.unit)
      append(d);
  if (!map.window.empty()) {
    shape.pixels = map.box.front();
    shape.windows = tensorWindows(map, step);
  }
  return shape;
}

static void planTensorMaps(PlannedLaunch &launch, const LaunchStep &step, const Kernel &kernel) {
  for (const TensorMap &map : launch.instance->launch->tensorMaps) {
    PlannedTensorMap &planned = launch.tensorMaps.emplace_back();
    for (int32_t i = 0; i < map.arg; ++i)
      planned.word += kernel.args[size_t(i)].words();
    const View &view = step.args[size_t(map.arg)].view;
    if (view.buffer >= 0) // otherwise absent, and nothing reads its map
      planned.maps = std::make_shared<cuda::TensorMaps>(mapShape(map, view, step));
  }
}

/// Computes the CTAs of a GPU launch.
static Status countCtas(PlannedLaunch &launch, const LaunchStep &step, const ExecutionDevice &device, const OpEntry &op,
                        const GpuFunction &function) {
  const LaunchShape &shape = *launch.instance->launch;
  const bool persistent = step.persistent;
  constexpr int64_t mostX = INT32_MAX, mostYz = 65535;
  int64_t x = (launch.grid[0] + shape.blocks - 1) / shape.blocks * shape.cluster;
  if (persistent || shape.occupancy) {
    int64_t resident = int64_t(device.multiprocessors) * std::max(shape.occupancy, 1u);
    if (shape.cluster > 1)
      resident = std::max<int64_t>(function.residentClusters, 1) * shape.cluster;
    if (persistent)
      x = launch.instance->tiles.empty()
              ? resident
              : int64_t(std::clamp(countTiles(*launch.instance, step), 0.0, double(mostX))) * shape.cluster;
    x = std::min(x, resident);
  }
  if (x > mostX || launch.grid[1] > mostYz || launch.grid[2] > mostYz)
    return Error{KPKG_ERROR_NO_INSTANCE,
                 op.name + ": a grid of " + std::to_string(launch.grid[0]) + " x " + std::to_string(launch.grid[1]) +
                     " x " + std::to_string(launch.grid[2]) + " blocks is more than a GPU launches",
                 op.name,
                 launch.instance->label,
                 {}};
  launch.ctas[0] = uint32_t(x), launch.ctas[1] = uint32_t(launch.grid[1]), launch.ctas[2] = uint32_t(launch.grid[2]);
  return {};
}

static Result<PlannedLaunch> planLaunch(PlannedCall &planned, const LaunchStep &step, const Library &library,
                                        const OpEntry &op, std::span<const int64_t> alignments, const Frame &frame,
                                        UseCounter count, void *context) {
  auto chosen = chooseInstance({library.tables(), step, op.name, planned.device, alignments, frame.restriction});
  if (!chosen)
    return chosen.error();
  PlannedLaunch launch;
  launch.instance = *chosen;
  launch.use = count(context, **chosen);
  launch.cost = estimateCost(**chosen, step);
  if (planned.device.isCuda) {
    auto function = library.gpuFunction(**chosen, planned.device.index, frame.stream);
    if (!function) {
      Error error = function.error();
      return Error{error.status, op.name + ": " + error.message, op.name, error.instance, {}};
    }
    launch.function = function->handle;
    std::copy(step.grid.begin(), step.grid.end(), launch.grid);
    if (Status status = countCtas(launch, step, planned.device, op, *function); !status)
      return status.error();
    launch.firstWord = planned.words.size();
    packArguments(planned, step, library.tables().kernels[(*chosen)->kernel], **chosen);
    for (int64_t extent : launch.grid)
      planned.words.push_back(extent);
    if ((*chosen)->launch->counters) // the counter is assigned at launch
      planned.words.push_back(0);
    launch.wordCount = planned.words.size() - launch.firstWord;
    planTensorMaps(launch, step, library.tables().kernels[(*chosen)->kernel]);
    return launch;
  }
  auto code = library.kernel(**chosen);
  if (!code)
    return code.error();
  launch.kernel = *code;
  if (step.persistent) {
    auto tiles = library.tileCount(**chosen);
    if (!tiles)
      return tiles.error();
    launch.tileCount = *tiles;
  }
  std::copy(step.grid.begin(), step.grid.end(), launch.grid);
  launch.firstWord = planned.words.size();
  packArguments(planned, step, library.tables().kernels[(*chosen)->kernel], **chosen);
  for (const LaunchArg &arg : step.args)
    if (arg.kind == LaunchArg::Kind::View && arg.view.buffer >= 0)
      launch.workBytes += uint64_t(bytesOf(arg.view));
  double flops = std::min(launch.cost.flops, 1e18);
  launch.workBytes = std::max(launch.workBytes, uint64_t(std::max(flops, 0.0) / flopsPerByte));
  return launch;
}

Result<ExecutionDevice> executionDevice(const Frame &frame) {
  ExecutionDevice device;
  if (frame.device.type != KPKG_DEVICE_CUDA)
    return device;
  auto properties = cuda::deviceProperties(frame.device.index);
  if (!properties)
    return properties.error();
  device.isCuda = true;
  device.index = frame.device.index;
  device.major = properties->major, device.minor = properties->minor;
  device.multiprocessors = properties->multiprocessors;
  return device;
}

Result<int64_t> processorsFor(const plan::Program &program, const Frame &frame) {
  if (!program.usesProcessors())
    return plan::hostProcessors;
  auto device = executionDevice(frame);
  if (!device)
    return device.error();
  return device->processors();
}

std::vector<int64_t> alignmentsOf(const plan::Resolution &resolution, const Frame &frame) {
  std::vector<int64_t> alignments;
  alignments.reserve(resolution.buffers.size());
  for (const plan::Buffer &buffer : resolution.buffers) {
    // Memory of allocators, and outputs that are written in place, have this alignment.
    int64_t alignment = addressAlignment;
    if (buffer.kind == plan::Buffer::Kind::Argument)
      if (uint64_t address = frame.addresses[size_t(buffer.argument)])
        alignment = std::min<int64_t>(alignment, int64_t(address & -address));
    alignments.push_back(alignment);
  }
  return alignments;
}

std::vector<PlannedResult> describeResults(const plan::Resolution &resolution, kpkg_device device) {
  std::vector<PlannedResult> results;
  results.reserve(resolution.outputs.size());
  for (const View &view : resolution.outputs) {
    PlannedResult planned;
    kpkg_result &result = planned.result;
    result.device = device;
    if (view.buffer < 0) {
      result.kind = KPKG_NONE;
      result.source = KPKG_FROM_NOTHING;
      results.push_back(planned);
      continue;
    }
    const plan::Buffer &buffer = resolution.buffers[size_t(view.buffer)];
    result.kind = KPKG_TENSOR;
    result.source = KPKG_FROM_ALLOCATION;
    result.index = int32_t(std::count_if(results.begin(), results.end(), [](const PlannedResult &other) {
      return other.result.source == KPKG_FROM_ALLOCATION;
    }));
    result.dtype = int32_t(view.dtype);
    result.rank = view.rank;
    result.offset = view.offset;
    std::copy_n(view.shape.begin(), view.rank, result.shape);
    std::copy_n(view.strides.begin(), view.rank, result.strides);

    // If the view is the whole buffer, the buffer is allocated with the view's shape.
    planned.buffer = view.buffer;
    planned.bytes = buffer.bytes;
    int64_t elementBytes = plan::dtypeBytes(view.dtype), span = view.numel() ? 1 : 0;
    bool forwards = view.offset == 0;
    for (int32_t d = 0; d < view.rank; ++d) {
      forwards &= view.strides[size_t(d)] > 0 || view.shape[size_t(d)] <= 1;
      span += span ? (view.shape[size_t(d)] - 1) * view.strides[size_t(d)] : 0;
    }
    result.whole = forwards && span * elementBytes == buffer.bytes;
    if (result.whole) {
      planned.rank = view.rank;
      planned.shape = view.shape;
      planned.strides = view.strides;
    } else {
      planned.rank = 1;
      planned.shape[0] = buffer.bytes / elementBytes;
      planned.strides[0] = 1;
    }
    results.push_back(planned);
  }
  return results;
}

Status finishPlan(PlannedCall &planned, const Library &library, const OpEntry &op, const Frame &frame, UseCounter count,
                  void *context) {
  auto device = executionDevice(frame);
  if (!device)
    return device.error();
  planned.device = *device;
  const plan::Resolution &resolution = frame.resolution;
  planned.buffers.assign(resolution.buffers.begin(), resolution.buffers.end());
  planned.temporaryBytes = resolution.temporaryBytes;
  std::vector<int64_t> alignments = alignmentsOf(resolution, frame);
  planned.steps.reserve(resolution.steps.size());
  for (const plan::Step &step : resolution.steps) {
    PlannedStep next;
    if (const auto *copy = std::get_if<plan::CopyStep>(&step)) {
      next.copy = ptrdiff_t(planned.copySteps.size());
      planned.copySteps.push_back(*copy);
      ++planned.copies;
      planned.copiedBytes += uint64_t(bytesOf(copy->source));
    } else {
      auto launch = planLaunch(planned, std::get<LaunchStep>(step), library, op, alignments, frame, count, context);
      if (!launch && launch.error().status == KPKG_ERROR_NO_INSTANCE) {
        planned.refusal = launch.error();
        planned.steps.clear();
        return {};
      }
      if (!launch)
        return launch.error();
      next.launch = std::move(*launch);
      ++planned.launches;
    }
    planned.steps.push_back(std::move(next));
  }
  planned.results = describeResults(resolution, frame.device);
  return {};
}

} // namespace kpkg::package
