// The hints of @schedule: what a kernel asks for, and which of it its code does without, and why.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include <string>

namespace kpkg::kgpu {
/// What `@schedule` says of `name`; 0 where it says nothing.
unsigned hintOf(tile::KernelOp kernel, llvm::StringRef name);

/// Why the kernel's products cannot be given out to clusters as its @schedule(cluster=) asks; nothing where they can,
/// or where it does not ask.
std::optional<std::string> whyNoCluster(tile::KernelOp kernel, const TargetModel &target);
/// The same of tiles that CTAs take as they become free, as @schedule(dynamic=) asks.
std::optional<std::string> whyNotDynamic(tile::KernelOp kernel, const TargetModel &target);

/// What became of a kernel.
struct Outcome {
  Launch launch;         ///< as it is once the kernel is laid out
  bool hasRings = false; ///< its loads, or operands of its products, go through rings in shared memory
  unsigned resident = 1; ///< CTAs that a multiprocessor holds at once
};

/// A hint that a kernel's code does without.
struct DroppedHint {
  std::string name;
  unsigned value = 0;
  std::string why;
  /// The kernel is one for which the hint means something, but there was no room for it. Else none of its launches has
  /// it.
  bool isForWantOfRoom = false;
};

/// Whether a launch, as `candidates` lists it for `kernel`, is made with the hint `name` of that kernel.
bool asksFor(const Launch &launch, tile::KernelOp kernel, const TargetModel &target, llvm::StringRef name);

/// The hints of `kernel`, at tile level, that `outcome` has not, in alphabetical order.
llvm::SmallVector<DroppedHint> droppedHints(tile::KernelOp kernel, const TargetModel &target, const Outcome &outcome);
} // namespace kpkg::kgpu
