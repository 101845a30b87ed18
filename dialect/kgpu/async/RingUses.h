// Which use of a ring an op belongs to, and how uses are counted.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Whether a buffer is the slot of this use: `kgpu.slot %all[%use mod slots]`. A single slot is that of every use.
bool isSlotOf(mlir::Value buffer, mlir::Value use);
/// Makes that slot, of this type.
mlir::Value useSlot(mlir::OpBuilder &builder, mlir::Location loc, SharedType slot, mlir::Value buffer, mlir::Value use);

/// The ring of which an op begins a use for its role: it acquires or awaits it, shares, hands, sends or receives; null
/// for other ops. Of what warpgroups share, only sharing counts.
mlir::Value ringOfUse(mlir::Operation *op);
/// Whether there is such an op for this ring in `op`.
bool containsUse(mlir::Operation *op, mlir::Value ring);

/// Warpgroups of a CTA that release each use of a ring.
unsigned releasing(RingOp ring);

/// A count of uses: so many more than a value says; than none where the value is null.
struct UseCount {
  mlir::Value base;
  int64_t offset = 0;
  bool operator==(const UseCount &other) const = default;
};
UseCount useCountOf(mlir::Value value);

/// Checks that a role counts the uses of a ring as 0, 1, 2, ..., through all of its loops.
mlir::LogicalResult verifyCounts(RingOp ring, mlir::Block &role);
} // namespace kpkg::kgpu
