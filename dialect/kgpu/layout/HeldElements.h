// How much of a tile a thread can hold.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {

/// Elements of a tile that a thread may have: several times its registers, since of what is computed element by element
/// few exist at once. Above, code is long and slow rather than right.
inline constexpr unsigned kMostHeld = 1024;

/// An error with the place of `value` and a way out where a thread has more than that of it in `layout`.
llvm::LogicalResult checkHeld(mlir::Value value, const layout::Layout &layout);

} // namespace kpkg::kgpu
