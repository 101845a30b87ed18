// Inserts conversions at ops whose operands and results have layouts of different classes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/analysis/StreamedDots.h"
#include "dialect/layout/Layout.h"

namespace kpkg::kgpu {

/// Inserts conversions where an op needs or produces another layout. All tiles of the kernel must have layouts.
/// `products` are those of `consumers` warpgroups.
llvm::LogicalResult fitLayouts(tile::KernelOp kernel, llvm::ArrayRef<StreamedDot> products, unsigned consumers);

} // namespace kpkg::kgpu
