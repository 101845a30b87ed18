// How operands and accumulators of mma.sync lie in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Builders.h"

namespace kpkg::kgpu {
/// Bytes along K that one mma.sync takes, of all types with 16 rows.
inline constexpr int64_t kMmaSyncDepthBytes = 32;

/// An accumulator of mma.sync: 16x8 blocks, those of a warp next to each other as far as powers of two go, warps in the
/// grid that reads least of the operands. `shape` is a multiple of 16x8.
layout::Layout mmaSyncAccumulator(llvm::ArrayRef<int64_t> shape, layout::Threads threads);
/// Whether registers 4i .. 4i+3 of all lanes are one 16x8 block, as the instruction has it.
bool isMmaSyncAccumulator(const layout::Layout &layout);

/// The left (M, K) or right (K, N) operand, of `depth` along K, of a product by mma.sync with this accumulator. `depth`
/// is a multiple of kMmaSyncDepthBytes. Registers of a word are neighbours along K.
layout::Layout mmaSyncLeft(const layout::Layout &accumulator, int64_t depth, unsigned elementBytes);
layout::Layout mmaSyncRight(const layout::Layout &accumulator, int64_t depth, unsigned elementBytes);
} // namespace kpkg::kgpu
