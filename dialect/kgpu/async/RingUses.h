// Which use of a ring an op belongs to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Whether a buffer is the slot of this use: `kgpu.slot %all[%use mod slots]`. A single slot is that of every use.
bool isSlotOf(mlir::Value buffer, mlir::Value use);
/// Makes that slot, of this type.
mlir::Value useSlot(mlir::OpBuilder &builder, mlir::Location loc, SharedType slot, mlir::Value buffer, mlir::Value use);
} // namespace kpkg::kgpu
