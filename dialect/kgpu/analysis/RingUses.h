// Determines which use of a ring an op belongs to, and checks how roles count uses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Returns the allocated buffer that `buffer` is, is an alias of, or is a part of.
mlir::Value rootBuffer(mlir::Value buffer);
/// Returns whether `buffer` is the slot of this use: `kgpu.slot %all[%use mod slots]`. A single slot serves every use.
bool isSlotOf(mlir::Value buffer, mlir::Value use);
/// Builds the slot of a use, with this type.
mlir::Value useSlot(mlir::OpBuilder &builder, mlir::Location loc, SharedType slot, mlir::Value buffer, mlir::Value use);

/// Returns the ring of which an op begins a use for its role: it acquires, awaits, publishes or consumes. Returns null
/// for other ops. For tiles that warpgroups share, only kgpu.publish_all counts.
mlir::Value ringOfUse(mlir::Operation *op);
/// Returns whether `op` contains such an op for this ring.
bool containsUse(mlir::Operation *op, mlir::Value ring);

/// Returns how many warpgroups of a CTA release each use of a ring.
unsigned releasing(RingOp ring);

/// A count of uses: `base` plus `offset`, or only `offset` if `base` is null.
struct UseCount {
  mlir::Value base;
  int64_t offset = 0;
  bool operator==(const UseCount &other) const = default;
};
UseCount useCountOf(mlir::Value value);

/// Checks that a role counts the uses of a ring as 0, 1, 2, ..., through all of its loops.
mlir::LogicalResult verifyCounts(RingOp ring, mlir::Block &role);
} // namespace kpkg::kgpu
