// Builds the layouts of coalesced memory access and of mma, wgmma and ldmatrix fragments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::layout {
/// The number of threads that a layout covers, in each part. All numbers are powers of two, and lanes <= 32.
struct Threads {
  unsigned lanes = 32, warps = 1, blocks = 1;
};

/// Returns a layout of shape 1x1x... in which every thread holds the only element.
Layout replicated(unsigned rank, Threads threads);

/// Builds a layout for coalesced access to global memory. A thread holds vectors of up to `vectorBytes` along order[0].
/// Lanes, then warps, then blocks are assigned along order[0], order[1] and so on until they cover the shape. Unused
/// bits become free bits, and the rest of the shape becomes repeats. A dimension takes no further thread bit when that
/// bit would reach into padding and other dimensions still need bits. The fastest dimension first covers at least 64
/// bytes. `order` lists dimensions, the fastest in memory first. An empty `order` means the last dimension first.
Layout coalesced(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, Threads threads, unsigned vectorBytes = 16,
                 llvm::ArrayRef<unsigned> order = {});

/// Builds a layout in which each warp holds all of dimension `axis`. Vectors and lanes are assigned along `axis` first.
/// Warps and blocks are assigned along the other dimensions, the last one first, or become free bits.
Layout withinWarp(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, Threads threads, unsigned axis);
/// Builds such a layout for the threads of `wide` in which each CTA holds the elements that it has in `wide`. Returns
/// nothing if CTAs share `axis`, or if their parts leave holes.
std::optional<Layout> withinWarp(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, const Layout &wide,
                                 unsigned axis);

/// Builds a layout from explicit sizes per dimension for each thread, the lanes, the warps and the blocks. All sizes
/// are powers of two. Bits are assigned in `order`, fastest dimension first, and repeats cover the rest of `shape`.
llvm::Expected<Layout> blocked(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> perThread,
                               llvm::ArrayRef<int64_t> lanes, llvm::ArrayRef<int64_t> warps,
                               llvm::ArrayRef<int64_t> blocks, llvm::ArrayRef<unsigned> order = {});

/// Returns the 16x8 f32 or f16 accumulator of mma.sync m16n8: registers c0..c3 of a lane.
Layout mmaAccumulator();
/// Returns operand A of mma.sync with 16 rows and 32 bytes of K. The instruction is m16n8k8 for elements of 4 bytes,
/// m16n8k16 for 2 bytes and m16n8k32 for 1 byte. Dimensions are (M, K).
Layout mmaOperandA(unsigned elementBytes);
/// Returns operand B of the same instructions. Dimensions are (K, N), and N = 8.
Layout mmaOperandB(unsigned elementBytes);
/// Returns the 64xN accumulator of wgmma m64nN: one warpgroup, N a multiple of 8 up to 256.
Layout wgmmaAccumulator(unsigned n);
/// Returns the fragment of 8x8 matrices of 2-byte elements that ldmatrix and stmatrix use: a lane holds two adjacent
/// elements of each matrix. The `count` matrices (1, 2 or 4) are stacked along the rows, which makes 8*count rows.
Layout ldmatrix(unsigned count);
} // namespace kpkg::layout
