// Runs a kernel of the kgpu level as its roles do, side by side, with copies and products that end in a random order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What it finds without a GPU: copies to slots that are still read, products that start before their operands are there
// or whose operands change while they run, results that are taken too early, bytes that nobody announced, roles that
// wait for each other for ever, work that nobody waited for. Values are computed too, through the bytes of shared
// memory as tensor maps and swizzles place them, so wrong slots, coordinates and distances show as wrong results.
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/sim/Interpreter.h"

namespace kpkg::sim {
struct AsyncOptions {
  /// Of the order in which roles go on, and copies and products end. Others find other races.
  uint64_t seed = 0;
  int64_t maxSteps = int64_t(1) << 28;
};

/// Runs all CTAs of `grid` (x, y, z), one after the other, but those of a cluster that copy operands for each other
/// together, and all that share a counter of tiles, of which some are slower than others. `kernel` has a launch;
/// buffers with offsets share memory as these say. The error names the op, its location and what it met. Known are
/// rings, roles, TMA, wgmma and everything that the tile interpreter knows.
llvm::Error simulate(tile::KernelOp kernel, llvm::ArrayRef<Argument> arguments, std::array<int64_t, 3> grid,
                     const AsyncOptions &options = {});
} // namespace kpkg::sim
