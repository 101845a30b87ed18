// The layouts that hardware and memory access want: coalesced rows, mma and wgmma fragments, ldmatrix.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::layout {
/// How many threads a layout is for. All powers of two; lanes <= 32.
struct Threads {
  unsigned lanes = 32, warps = 1, blocks = 1;
};

/// All threads hold the only element: shape 1x1x...
Layout replicated(unsigned rank, Threads threads);

/// Global memory access: vectors of up to `vectorBytes` along order[0]; then lanes, warps and blocks go along order[0],
/// order[1],
/// ... until the shape is covered; bits left over are free, what is left of the shape are repeats. While other
/// dimensions can use them, threads stop in a dimension before they would reach into padding, once they cover 64 bytes
/// of it. `order`: dimensions, fastest in memory first; empty = last dimension first.
Layout coalesced(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, Threads threads, unsigned vectorBytes = 16,
                 llvm::ArrayRef<unsigned> order = {});

/// A layout in which each warp has all of dimension `axis`: vectors and lanes along it first, warps and blocks along
/// the others, last dimension first, or free.
Layout withinWarp(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, Threads threads, unsigned axis);

/// Written out: sizes per dimension that each thread, the lanes, the warps and the blocks take (powers of two), in
/// `order` (fastest first); repeats until `shape` is covered.
llvm::Expected<Layout> blocked(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> perThread,
                               llvm::ArrayRef<int64_t> lanes, llvm::ArrayRef<int64_t> warps,
                               llvm::ArrayRef<int64_t> blocks, llvm::ArrayRef<unsigned> order = {});

/// The 16x8 f32 (or f16) accumulator of mma.sync m16n8: registers c0..c3 of a lane.
Layout mmaAccumulator();
/// Operand A of mma.sync with 16 rows and 32 bytes of K: m16n8k8 (4-byte elements), m16n8k16 (2), m16n8k32 (1).
/// Dimensions (M, K).
Layout mmaOperandA(unsigned elementBytes);
/// Operand B of the same. Dimensions (K, N): N = 8.
Layout mmaOperandB(unsigned elementBytes);
/// The 64xN accumulator of wgmma m64nN: one warp group, N a multiple of 8 up to 256.
Layout wgmmaAccumulator(unsigned n);
/// One 8x8 matrix of 2-byte elements as ldmatrix and stmatrix hold it: two neighbouring elements a lane. `count`
/// matrices (1, 2, 4) stand below each other: 8*count rows.
Layout ldmatrix(unsigned count);
} // namespace kpkg::layout
