// Converts a resolution to a planned call: instances, argument words, results.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Choice.h"
#include "runtime/package/Library.h"
#include "runtime/package/Log.h"
#include "runtime/package/PlannedCall.h"
#include "runtime/package/PrintFormat.h"
#include "runtime/package/Windows.h"
#include "runtime/plan/Program.h"

#include <algorithm>

namespace kpkg::package {

using plan::LaunchArg;
using plan::LaunchStep;
using plan::View;

static int64_t bytesOf(const View &view) { return plan::dtypeBytes(view.dtype, view.numel()); }

static void packView(PlannedCall &planned, const View &view, const KernelArgument &argument) {
  size_t first = planned.words.size();
  planned.words.resize(first + wordsOf(argument));
  if (view.buffer < 0)
    return; // absent: all words 0
  planned.pointers.push_back({first, view.buffer, plan::dtypeBytes(view.dtype, view.offset)});
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

/// Returns the shape of a tensor map. The choice has ensured that the device accepts the view.
static device::TensorMapShape mapShape(const TensorMap &map, const View &view, const LaunchStep &step) {
  device::TensorMapShape shape;
  shape.dtype = int32_t(view.dtype);
  shape.swizzle = map.swizzle;
  auto append = [&](int32_t d) {
    shape.extents[shape.rank] = uint64_t(view.shape[size_t(d)]);
    // The stride of a single coordinate is never used, but the driver checks it.
    shape.strides[shape.rank] =
        view.shape[size_t(d)] > 1 ? uint64_t(plan::dtypeBytes(view.dtype, view.strides[size_t(d)])) : 16;
    shape.box[shape.rank++] = map.box[size_t(d)];
  };
  append(map.unit);
  for (int32_t d = view.rank; d-- > 0;)
    if (d != map.unit)
      append(d);
  if (map.window) {
    shape.pixels = map.box.front();
    shape.windows = tensorWindows(map, step);
  }
  return shape;
}

/// Returns the shape of the tensor map of an absent view: one element, which is zero. Copies of boxes get zeros from
/// it, as loads of an absent view do.
static device::TensorMapShape absentShape(const TensorMap &map, int32_t rank, plan::DType dtype) {
  View view;
  view.rank = rank;
  view.dtype = dtype;
  std::fill_n(view.shape.begin(), size_t(rank), 1);
  TensorMap box = map;
  box.window.reset();
  device::TensorMapShape shape = mapShape(box, view, {});
  if (map.window)
    shape.pixels = map.box.front();
  return shape;
}

static std::vector<device::TensorMapArgument> describeTensorMaps(const Instance &instance, const LaunchStep &step,
                                                                 const Kernel &kernel) {
  std::vector<device::TensorMapArgument> maps;
  for (const TensorMap &map : instance.launch->tensorMaps) {
    device::TensorMapArgument &described = maps.emplace_back();
    for (int32_t i = 0; i < map.arg; ++i)
      described.word += wordsOf(kernel.args[size_t(i)]);
    const View &view = step.args[size_t(map.arg)].view;
    described.isAbsent = view.buffer < 0;
    described.shape = described.isAbsent
                          ? absentShape(map, kernel.args[size_t(map.arg)].rank, instance.dtypes[size_t(map.arg)])
                          : mapShape(map, view, step);
  }
  return maps;
}

static void printFromKernel(void *context, int32_t format, const uint64_t *values, int32_t count) {
  const auto &prints = static_cast<const Instance *>(context)->prints;
  if (format >= 0 && size_t(format) < prints.size() && count >= 0)
    log(KPKG_LOG_PRINT, formatPrint(prints[size_t(format)], {values, size_t(count)}));
}

static device::LaunchDescription describeLaunch(const PlannedLaunch &launch, const LaunchStep &step,
                                                const Kernel &kernel) {
  const Instance &instance = *launch.instance;
  device::LaunchDescription description;
  std::copy(step.grid.begin(), step.grid.end(), description.grid);
  description.tiles = countTiles(instance, step);
  description.firstWord = launch.firstWord;
  for (const LaunchArg &arg : step.args)
    if (arg.kind == LaunchArg::Kind::View && arg.view.buffer >= 0)
      description.bytes += uint64_t(bytesOf(arg.view));
  description.flops = launch.cost.flops;
  if (instance.launch)
    description.tensorMaps = describeTensorMaps(instance, step, kernel);
  description.prints = {printFromKernel, const_cast<Instance *>(&instance)};
  return description;
}

/// Chooses an instance whose code the device accepts, and sets it in `launch`.
static Result<const device::Kernel *> chooseKernel(PlannedLaunch &launch, const ChoiceQuery &query,
                                                   const Library &library, device::Device &device,
                                                   device::Stream stream) {
  while (true) {
    auto chosen = chooseInstance(query);
    if (!chosen)
      return chosen.error();
    launch.instance = *chosen;
    auto kernel = library.kernel(**chosen, device, stream);
    if (kernel || library.refusals().find(**chosen, device).empty())
      return kernel;
    // The refused instance is not chosen again.
  }
}

static Result<PlannedLaunch> planLaunch(PlannedCall &planned, const LaunchStep &step, const Library &library,
                                        const OpEntry &op, std::span<const int64_t> alignments, const Frame &frame,
                                        UseCounter count, void *context) {
  PlannedLaunch launch;
  device::Device &device = *planned.device;
  ChoiceQuery query = {library.tables(),   step, op.name, device, alignments, frame.restriction, frame.invariance,
                       &library.refusals()};
  auto named = [&](const Error &error) {
    return Error{error.status, op.name + ": " + error.message, op.name, error.instance, error.argument};
  };
  auto kernel = chooseKernel(launch, query, library, device, frame.stream);
  if (!kernel)
    return kernel.error().op.empty() ? named(kernel.error()) : kernel.error();
  const Instance &instance = *launch.instance;
  launch.use = count(context, instance);
  launch.cost = estimateCost(instance, step);
  launch.firstWord = planned.words.size();
  const Kernel &declared = library.tables().kernels[instance.kernel];
  packArguments(planned, step, declared, instance);
  auto bound = (*kernel)->bind(describeLaunch(launch, step, declared), planned.words);
  if (!bound) {
    Error error = bound.error();
    error.instance = instance.label;
    error.message = instance.label + ": " + error.message;
    return named(error);
  }
  launch.launch = std::move(*bound);
  return launch;
}

Result<int64_t> processorsFor(const plan::Program &program, const Frame &frame) {
  if (!program.usesProcessors())
    return plan::hostProcessors;
  auto device = findDevice(frame.device);
  if (!device)
    return device.error();
  return (*device)->planProcessors();
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
    int64_t span = view.numel() ? 1 : 0;
    bool forwards = view.offset == 0;
    for (int32_t d = 0; d < view.rank; ++d) {
      forwards &= view.strides[size_t(d)] > 0 || view.shape[size_t(d)] <= 1;
      span += span ? (view.shape[size_t(d)] - 1) * view.strides[size_t(d)] : 0;
    }
    result.whole = forwards && plan::dtypeBytes(view.dtype, span) == buffer.bytes;
    if (result.whole) {
      planned.rank = view.rank;
      planned.shape = view.shape;
      planned.strides = view.strides;
    } else {
      planned.rank = 1;
      planned.shape[0] = buffer.bytes * 8 / plan::dtypeBits(view.dtype);
      planned.strides[0] = 1;
    }
    results.push_back(planned);
  }
  return results;
}

Status finishPlan(PlannedCall &planned, const Library &library, const OpEntry &op, const Frame &frame, UseCounter count,
                  void *context) {
  auto device = findDevice(frame.device);
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
