// Declares loaded code of a device, its kernels, and launches with bound shapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_LAUNCH_H
#define KPKG_DEVICE_LAUNCH_H

#include "runtime/device/TensorMap.h"

#include <kpkg/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kpkg::device {

/// A queue of the caller; null is the device's default queue.
using Stream = void *;

/// The threads and memory of a kernel on a device that launches grids of thread blocks (CTAs).
struct LaunchShape {
  uint32_t threads = 1;
  uint32_t blocks = 1;    ///< kernel blocks that a CTA runs, along x
  uint32_t cluster = 1;   ///< CTAs that run one kernel block, or share a tile's operands
  uint32_t occupancy = 0; ///< CTAs per multiprocessor of persistent kernels; 0: the grid determines it
  uint32_t shared = 0;    ///< bytes of dynamic shared memory
  uint32_t counters = 0;  ///< tile counters of the code; each launch in flight uses one; 0: none needed
  bool overlaps = false;  ///< may start before the previous kernel in the stream has ended: it waits itself
};

/// A kernel of loaded code, as its package describes it.
struct KernelDescription {
  std::string symbol;
  bool isPersistent = false;        ///< has no grid: its blocks take tiles until none is left
  size_t scratchBytes = 0;          ///< per task, on devices whose tasks have scratch memory
  std::optional<LaunchShape> shape; ///< of kernels that are launched as CTAs
  bool hasAsserts = false, hasPrints = false;
};

/// A tensor map that a launch passes to its kernel.
struct TensorMapArgument {
  size_t word = 0; ///< the view's address, counted from the launch's first word
  TensorMapShape shape;
  bool isAbsent = false; ///< the view has no memory: its map describes a zero
};

/// Receives the values of a kernel's `print`, whose text has number `format`, or a number that does not exist.
struct PrintSink {
  void (*print)(void *context, int32_t format, const uint64_t *values, int32_t count) = nullptr;
  void *context = nullptr;
};

/// A launch whose shapes are known. Addresses and scalars are known at each run.
struct LaunchDescription {
  int64_t grid[3] = {1, 1, 1};
  std::optional<double> tiles; ///< of a persistent kernel, if it is known before the run
  size_t firstWord = 0;        ///< position of the arguments in the call's words
  uint64_t bytes = 0;          ///< that the launch accesses, approximately
  double flops = 0;            ///< that it computes, approximately
  std::vector<TensorMapArgument> tensorMaps;
  PrintSink prints;
};

/// What a kernel told the host.
struct LaunchReport {
  int32_t failed = 0;        ///< 0, or 1 + the index of a failed assert
  uint64_t lostMessages = 0; ///< prints without space
};

/// A launch that is prepared once and run any number of times, also by several threads at a time.
class Launch {
public:
  virtual ~Launch() = default;
  /// Runs the kernel, or queues it on the stream. The device is entered. `words` are the launch's arguments, which it
  /// may change behind those that the caller gave. The report of a kernel without asserts and prints stays empty.
  virtual Status run(int64_t *words, Stream stream, LaunchReport &report) const = 0;
};

/// An entry point of loaded code. Valid while its Executable lives.
class Kernel {
public:
  virtual ~Kernel() = default;
  /// Prepares a launch. `words` ends with its arguments, to which the device appends words of its own.
  ///
  /// KPKG_ERROR_NO_INSTANCE: the device cannot launch this grid. KPKG_ERROR_UNSUPPORTED: nor these arguments.
  virtual Result<std::unique_ptr<const Launch>> bind(const LaunchDescription &launch,
                                                     std::vector<int64_t> &words) const = 0;
};

/// Loaded code.
class Executable {
public:
  virtual ~Executable() = default;
  /// Finds a kernel and prepares it for its launch shape. Errors are those of Device::load.
  virtual Result<std::unique_ptr<const Kernel>> kernel(const KernelDescription &description) = 0;
};

} // namespace kpkg::device
#endif
