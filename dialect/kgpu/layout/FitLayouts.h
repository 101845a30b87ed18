// Inserts conversions at ops whose operands and results have layouts of different classes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/analysis/StreamedDots.h"
#include "dialect/layout/Layout.h"

namespace kpkg::kgpu {

/// Returns the layout of a tile of shape `small` that is broadcast to a tile of shape `large` with this layout. It is
/// sliced along the dimensions in which only `small` has extent 1.
llvm::Expected<layout::Layout> sliced(layout::Layout layout, llvm::ArrayRef<int64_t> small,
                                      llvm::ArrayRef<int64_t> large);

/// Returns the layout of a left operand that wgmma reads from registers.
layout::Layout leftOperand(mlir::Value value, unsigned consumers);

/// Inserts conversions where an op needs or produces another layout. All tiles of the kernel must have layouts.
/// `products` are those of `consumers` warpgroups.
llvm::LogicalResult fitLayouts(tile::KernelOp kernel, llvm::ArrayRef<StreamedDot> products, unsigned consumers);

} // namespace kpkg::kgpu
