// Runs kernels of a loaded image as launches of a GPU: CTAs, parameters, tensor maps, tile counters and reports.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/CudaExecutable.h"
#include "runtime/device/cuda/Counters.h"
#include "runtime/device/cuda/Report.h"
#include "runtime/device/cuda/TensorMap.h"
#include "runtime/device/cuda/Zeros.h"

#include <algorithm>
#include <array>

namespace kpkg::cuda {

/// Limit of words for a kernel's arguments and its grid. CUDA allows 4096 bytes.
static constexpr size_t maxParameters = 512;
/// Of one kernel, by the package format.
static constexpr size_t maxTensorMaps = 8;
/// Dynamic shared memory that every kernel may use.
static constexpr uint32_t defaultShared = 48 << 10;

namespace {

/// A tensor map that follows the words of a launch.
struct BoundTensorMap {
  size_t word = 0;
  bool isAbsent = false;
  std::unique_ptr<const TensorMaps> maps;
};

struct CudaKernel : device::Kernel {
  void *function = nullptr;
  int32_t device = 0;
  int64_t multiprocessors = 0;
  /// Resident clusters on the device, for persistent kernels with clusters; 0 for others.
  int64_t residentClusters = 0;
  bool isPersistent = false, hasAsserts = false, hasPrints = false;
  device::LaunchShape shape;

  bool reports() const { return hasAsserts || hasPrints; }
  Result<std::unique_ptr<const device::Launch>> bind(const device::LaunchDescription &description,
                                                     std::vector<int64_t> &words) const override;
  Result<std::array<uint32_t, 3>> countCtas(const device::LaunchDescription &description) const;
};

struct CudaLaunch : device::Launch {
  const CudaKernel *kernel = nullptr;
  cuda::Launch launch;
  size_t wordCount = 0; ///< each is a parameter
  std::vector<BoundTensorMap> tensorMaps;
  device::PrintSink prints;

  Status run(int64_t *words, device::Stream stream, device::LaunchReport &report) const override;
};

} // namespace

Result<std::array<uint32_t, 3>> CudaKernel::countCtas(const device::LaunchDescription &description) const {
  constexpr int64_t mostX = INT32_MAX, mostYz = 65535;
  const auto &grid = description.grid;
  int64_t x = (grid[0] + shape.blocks - 1) / shape.blocks * shape.cluster;
  if (isPersistent || shape.occupancy) {
    int64_t resident = multiprocessors * std::max(shape.occupancy, 1u);
    if (shape.cluster > 1)
      resident = std::max<int64_t>(residentClusters, 1) * shape.cluster;
    if (isPersistent)
      x = description.tiles ? int64_t(std::clamp(*description.tiles, 0.0, double(mostX))) * shape.cluster : resident;
    x = std::min(x, resident);
  }
  if (x > mostX || grid[1] > mostYz || grid[2] > mostYz)
    return Error{KPKG_ERROR_NO_INSTANCE,
                 "a grid of " + std::to_string(grid[0]) + " x " + std::to_string(grid[1]) + " x " +
                     std::to_string(grid[2]) + " blocks is more than a GPU launches",
                 {},
                 {},
                 {}};
  return std::array<uint32_t, 3>{uint32_t(x), uint32_t(grid[1]), uint32_t(grid[2])};
}

Result<std::unique_ptr<const device::Launch>> CudaKernel::bind(const device::LaunchDescription &description,
                                                               std::vector<int64_t> &words) const {
  auto ctas = countCtas(description);
  if (!ctas)
    return ctas.error();
  auto bound = std::make_unique<CudaLaunch>();
  bound->kernel = this;
  bound->launch.function = function;
  std::copy(ctas->begin(), ctas->end(), bound->launch.grid);
  bound->launch.threads = shape.threads;
  bound->launch.sharedBytes = shape.shared;
  bound->launch.overlaps = shape.overlaps;
  bound->prints = description.prints;
  words.insert(words.end(), description.grid, description.grid + 3);
  if (shape.counters) // the counter is assigned at launch
    words.push_back(0);
  bound->wordCount = words.size() - description.firstWord;
  for (const device::TensorMapArgument &map : description.tensorMaps)
    bound->tensorMaps.push_back({map.word, map.isAbsent, std::make_unique<const TensorMaps>(map.shape)});
  size_t mapWords = sizeof(TensorMapValue) / sizeof(int64_t) * bound->tensorMaps.size();
  if (bound->wordCount + mapWords >= maxParameters || bound->tensorMaps.size() > maxTensorMaps)
    return Error{KPKG_ERROR_UNSUPPORTED, "it has too many parameters", {}, {}, {}};
  return std::unique_ptr<const device::Launch>(std::move(bound));
}

Status CudaLaunch::run(int64_t *words, device::Stream stream, device::LaunchReport &report) const {
  if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0)
    return {};
  // Every word is a separate parameter; the driver reads as many of its bytes as the parameter has.
  std::array<void *, maxParameters> parameters;
  for (size_t i = 0; i < wordCount; ++i)
    parameters[i] = words + i;
  Counter counter; // held until the kernel is launched
  if (kernel->shape.counters) {
    auto given = counterFor(kernel->device, stream, kernel->shape.counters);
    if (!given)
      return given.error();
    counter = std::move(*given);
    words[wordCount - 1] = counter.number;
  }
  std::array<TensorMapValue, maxTensorMaps> maps;
  const size_t firstMap = wordCount + kernel->reports();
  for (size_t i = 0; i < tensorMaps.size(); ++i) {
    parameters[firstMap + i] = &maps[i];
    const BoundTensorMap &map = tensorMaps[i];
    uint64_t address = uint64_t(words[map.word]);
    if (map.isAbsent) {
      auto zero = zeros(kernel->device);
      if (!zero)
        return zero.error();
      address = *zero;
    }
    if (Status made = map.maps->at(address, maps[i]); !made)
      return made;
  }
  if (!kernel->reports())
    return cuda::launch(launch, stream, parameters.data());
  auto block = Report::prepare(kernel->hasPrints, kernel->device, stream);
  if (!block)
    return block.error();
  uint64_t address = block->address();
  parameters[wordCount] = &address;
  Status status = cuda::launch(launch, stream, parameters.data());
  return status ? block->finish(prints, report) : status;
}

Result<std::unique_ptr<const device::Kernel>> CudaExecutable::kernel(const device::KernelDescription &description) {
  if (!description.shape)
    return Error{KPKG_ERROR_FORMAT, "kernel '" + description.symbol + "' has no launch", {}, {}, {}};
  auto function = findFunction(image, description.symbol);
  if (!function)
    return function.error();
  auto kernel = std::make_unique<CudaKernel>();
  kernel->function = *function;
  kernel->device = device;
  kernel->multiprocessors = multiprocessors;
  kernel->isPersistent = description.isPersistent;
  kernel->hasAsserts = description.hasAsserts;
  kernel->hasPrints = description.hasPrints;
  const device::LaunchShape &shape = kernel->shape = *description.shape;
  if (shape.shared > defaultShared)
    if (Status status = allowShared(*function, shape.shared); !status)
      return status.error();
  if (shape.occupancy && shape.cluster > 1) {
    auto clusters = residentClusters(*function, shape.cluster, shape.threads, shape.shared);
    if (!clusters)
      return clusters.error();
    kernel->residentClusters = *clusters;
  }
  return std::unique_ptr<const device::Kernel>(std::move(kernel));
}

} // namespace kpkg::cuda
