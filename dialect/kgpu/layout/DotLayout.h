// How matrix products are computed, and how their accumulators and operands lie in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/kgpu/ir/MmaFragments.h"
#include "dialect/layout/Builders.h"

namespace kpkg::kgpu {
/// What computes a matrix product.
enum class DotKind {
  Fma,     ///< multiply-adds of each thread; always possible
  MmaSync, ///< tensor cores, a warp at a time, operands in registers
  Wgmma    ///< tensor cores, a warp group at a time, operands in shared memory
};

/// What computes `op`, which belongs to a kernel with a target.
DotKind dotKind(tile::DotOp op);
/// What would compute it on this target, whatever the launch: never Wgmma.
DotKind dotKind(tile::DotOp op, const TargetModel &target);

/// An accumulator of multiply-adds: blocks of 4 rows by 16 bytes of columns in a thread, so that a row of one operand
/// and a column of the other are read from shared memory as vectors and used several times; 8 lanes along columns, the
/// rest along rows. Rank 2, or 3 with a batch, which only repeats.
layout::Layout dotAccumulator(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, layout::Threads threads);
} // namespace kpkg::kgpu
