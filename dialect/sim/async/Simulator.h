// Simulates a kernel of the kgpu level: its roles run concurrently, and copies and products end in random order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// It finds these errors without a GPU:
//   * copies to slots that are still read;
//   * products that start before their operands are complete, or whose operands change while they run;
//   * results that are used too early;
//   * copied bytes that no barrier expects;
//   * deadlocks of roles;
//   * work that is never waited for.
//
// It also computes values, through the bytes of shared memory as tensor maps and swizzles place them. So wrong slots,
// coordinates and distances show as wrong results.
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/sim/Values.h"

namespace kpkg::sim {
struct AsyncOptions {
  /// The seed for the order in which roles run, and copies and products end. Different seeds find different races.
  uint64_t seed = 0;
  int64_t maxSteps = int64_t(1) << 28;
};

/// Runs all CTAs of `grid` (x, y, z), one after the other. The CTAs of a cluster with multicast run together. So do all
/// CTAs that share a tile counter, and some of them are slower than others. `kernel` has a launch, and buffers with
/// offsets share memory accordingly. The error names the op, its location and the cause. Supported are rings, roles,
/// TMA, wgmma and all ops of the tile interpreter.
llvm::Error simulate(tile::KernelOp kernel, llvm::ArrayRef<Argument> arguments, std::array<int64_t, 3> grid,
                     const AsyncOptions &options = {});
} // namespace kpkg::sim
