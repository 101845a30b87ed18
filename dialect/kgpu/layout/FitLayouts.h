// Ops whose operands and results have layouts of different classes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/async/StreamedDots.h"
#include "dialect/layout/Layout.h"

namespace kpkg::kgpu {

/// What `layout`, that of a tile of shape `large`, is for one of shape `small`: sliced along the dimensions in which
/// only the latter has extent 1.
llvm::Expected<layout::Layout> sliced(layout::Layout layout, llvm::ArrayRef<int64_t> small,
                                      llvm::ArrayRef<int64_t> large);

/// What products of warpgroups take from registers.
layout::Layout leftOperand(mlir::Value value, unsigned consumers);

/// Puts conversions where an op of the kernel, all of whose tiles have layouts, needs or gives others. `products` are
/// those of `consumers` warpgroups.
llvm::LogicalResult fitLayouts(tile::KernelOp kernel, llvm::ArrayRef<StreamedDot> products, unsigned consumers);

} // namespace kpkg::kgpu
