// Defines the register layouts of operands and accumulators of mma.sync.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Builders.h"

namespace kpkg::kgpu {
/// Bytes along K of one mma.sync with 16 rows, for all element types.
inline constexpr int64_t kMmaSyncDepthBytes = 32;

/// Returns the layout of an mma.sync accumulator, made of 16x8 blocks. `shape` is a multiple of 16x8. Blocks of a warp
/// are adjacent as far as powers of two go. Warps form the grid that reads least of the operands.
layout::Layout mmaSyncAccumulator(llvm::ArrayRef<int64_t> shape, layout::Threads threads);
/// Returns whether registers 4i .. 4i+3 of all lanes are one 16x8 block, as the instruction requires.
bool isMmaSyncAccumulator(const layout::Layout &layout);

/// Return the layouts of the left (M, K) and the right (K, N) operand of an mma.sync product with this accumulator.
/// `depth` is the extent along K, a multiple of kMmaSyncDepthBytes in bytes. Registers of a word are adjacent along K.
layout::Layout mmaSyncLeft(const layout::Layout &accumulator, int64_t depth, unsigned elementBytes);
layout::Layout mmaSyncRight(const layout::Layout &accumulator, int64_t depth, unsigned elementBytes);
} // namespace kpkg::kgpu
