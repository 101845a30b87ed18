// Limits how many elements of a tile a thread can hold.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {

/// The most elements of a tile per thread: several times its registers, since few elements of elementwise code are
/// live at once. Above this, code is long and slow rather than wrong.
inline constexpr unsigned kMostHeld = 1024;

/// Reports an error at `value`, with a suggestion, if a thread holds more elements than that in `layout`.
llvm::LogicalResult checkHeld(mlir::Value value, const layout::Layout &layout);

} // namespace kpkg::kgpu
