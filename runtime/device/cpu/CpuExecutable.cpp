// Runs compiled kernels of a host object as launches of a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/CpuExecutable.h"
#include "runtime/device/cpu/Grid.h"

#include <algorithm>

namespace kpkg::cpu {

namespace {

/// Operations that cost about as much as moving one byte, for deciding whether to wake other threads.
constexpr double flopsPerByte = 4;

class CpuLaunch : public device::Launch {
public:
  /// The call's fields are complete except for the arguments.
  cpu::Launch launch;
  /// Only of persistent kernels.
  KpkgCpuTileCount tileCount = nullptr;

  Status run(int64_t *words, device::Stream, device::LaunchReport &report) const override {
    cpu::Launch now = launch;
    now.call.args = words;
    if (tileCount)
      now.call.grid[0] = tileCount(words);
    report.failed = cpu::run(now);
    return {};
  }
};

class CpuKernel : public device::Kernel {
public:
  KpkgCpuKernel entry = nullptr;
  /// Only of persistent kernels.
  KpkgCpuTileCount tileCount = nullptr;
  size_t scratchBytes = 0;

  Result<std::unique_ptr<const device::Launch>> bind(const device::LaunchDescription &description,
                                                     std::vector<int64_t> &) const override {
    auto bound = std::make_unique<CpuLaunch>();
    cpu::Launch &launch = bound->launch;
    launch.kernel = entry;
    std::copy_n(description.grid, 3, launch.call.grid);
    launch.call.print = description.prints.print;
    launch.call.printContext = description.prints.context;
    launch.scratchBytes = scratchBytes;
    double flops = std::clamp(description.flops, 0.0, 1e18);
    launch.workBytes = std::max(description.bytes, uint64_t(flops / flopsPerByte));
    bound->tileCount = tileCount;
    return std::unique_ptr<const device::Launch>(std::move(bound));
  }
};

} // namespace

Result<const void *> CpuExecutable::find(const std::string &symbol) const {
  if (const void *address = object.find(symbol))
    return address;
  return Error{KPKG_ERROR_FORMAT, "host object '" + name + "' has no function '" + symbol + "'", {}, {}, {}};
}

Result<std::unique_ptr<const device::Kernel>> CpuExecutable::kernel(const device::KernelDescription &description) {
  auto entry = find(description.symbol);
  if (!entry)
    return entry.error();
  auto kernel = std::make_unique<CpuKernel>();
  kernel->entry = reinterpret_cast<KpkgCpuKernel>(const_cast<void *>(*entry));
  kernel->scratchBytes = description.scratchBytes;
  if (description.isPersistent) {
    auto tiles = find(description.symbol + "$tiles");
    if (!tiles)
      return tiles.error();
    kernel->tileCount = reinterpret_cast<KpkgCpuTileCount>(const_cast<void *>(*tiles));
  }
  return std::unique_ptr<const device::Kernel>(std::move(kernel));
}

} // namespace kpkg::cpu
