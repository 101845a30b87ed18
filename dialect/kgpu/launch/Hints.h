// Interprets the hints of @schedule, and explains which of them the code of a kernel does not follow.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include <string>

namespace kpkg::kgpu {
using tile::Hint;

/// Explains why clusters cannot take the kernel's products as @schedule(cluster=) asks. Returns nothing if they can,
/// or if the hint is absent.
std::optional<std::string> whyNoCluster(tile::KernelOp kernel, const TargetModel &target);
/// The same for a dynamic tile scheduler, as @schedule(dynamic=) asks.
std::optional<std::string> whyNotDynamic(tile::KernelOp kernel, const TargetModel &target);

/// The result of compiling a kernel.
struct Outcome {
  Launch launch;         ///< as it is after layouts are assigned
  bool hasRings = false; ///< its loads, or operands of its products, go through rings in shared memory
  unsigned resident = 1; ///< CTAs that a multiprocessor holds at once
};

/// Returns whether ring buffers in shared memory are loaded some steps ahead in a laid-out kernel.
bool hasRings(tile::KernelOp laidOut);

/// A hint that a kernel's code does not follow.
struct DroppedHint {
  Hint hint;
  unsigned value = 0;
  std::string why;
  /// Whether the hint applies to the kernel, but there was no room for it. Otherwise none of the kernel's launches
  /// follows it.
  bool isForWantOfRoom = false;
};

/// Returns whether a launch from `candidates` of `kernel` follows the kernel's hint.
bool asksFor(const Launch &launch, tile::KernelOp kernel, const TargetModel &target, Hint hint);

/// Returns the hints of `kernel`, at tile level, that `outcome` does not follow, in the order of Hints.def.
llvm::SmallVector<DroppedHint> droppedHints(tile::KernelOp kernel, const TargetModel &target, const Outcome &outcome);
/// Returns the 32-bit registers that tiles take in each thread of a launch, at the peak. Nothing unless they are so
/// many that no such launch is tried: most would spill, and ptxas would take minutes. Kernels with products have no
/// limit.
std::optional<int64_t> excessiveRegisters(tile::KernelOp kernel, const TargetModel &target, const Launch &launch);
} // namespace kpkg::kgpu
