// Chooses the instructions of matrix products, and defines layouts of their accumulators.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/kgpu/ir/MmaFragments.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/layout/Builders.h"

namespace kpkg::kgpu {
/// The instructions that compute a matrix product.
enum class DotKind {
  Fma,     ///< FMA of single threads; always possible
  MmaSync, ///< tensor cores, one warp at a time, operands in registers
  Wgmma    ///< tensor cores, one warpgroup at a time, operands in shared memory
};

/// Returns the instructions for `op`; its kernel must have a target.
DotKind dotKind(tile::DotOp op);
/// Returns the instructions for `op` on this target, regardless of the launch; never Wgmma.
DotKind dotKind(tile::DotOp op, const TargetModel &target);
/// Returns why mma.sync cannot compute `op` on this target.
WhyNot whyNotMmaSync(tile::DotOp op, const TargetModel &target);

/// Returns the layout of an FMA accumulator: blocks of 4 rows by 16 bytes of columns per thread. So a thread reads a
/// row of one operand and a column of the other from shared memory as vectors, and uses each several times. Eight
/// lanes lie along columns, the rest along rows. The rank is 2, or 3 with a batch, which only repeats.
layout::Layout dotAccumulator(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, layout::Threads threads);
} // namespace kpkg::kgpu
