// Derives layouts from other layouts: slices, broadcasts, products, quotients, permutations and reshapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::layout {
/// Returns the layout of a value that is constant along `dim`, which gets extent 1. Lane, warp and block bits along
/// `dim` become free bits; register bits and repeats along it are removed. The rank stays the same. A reduction along
/// `dim` returns its result in this layout, and a broadcast along `dim` reads its operand in it. Fails when a basis has
/// components both in `dim` and in another dimension.
llvm::Expected<Layout> slice(const Layout &layout, unsigned dim);

/// Removes dimension `dim`, which must have extent 1.
Layout removeDim(const Layout &layout, unsigned dim);

/// Inserts a dimension of extent 1 before dimension `dim`.
Layout insertDim(const Layout &layout, unsigned dim);

/// Returns a layout of extent at least `extent` along `dim` whose slice along `dim` is `layout`, except for registers.
/// The elements are distributed over free lane bits, then free warp bits, then registers. `layout` must have extent 1
/// along `dim`.
Layout broadcast(const Layout &layout, unsigned dim, int64_t extent);

/// Permutes dimensions: dimension i of the result is dimension permutation[i] of `layout`. Registers keep their
/// numbers.
Layout permute(const Layout &layout, llvm::ArrayRef<unsigned> permutation);

/// Exchanges lane bits and register bits along `dim`, so that each thread holds `count` contiguous elements. `count` is
/// a power of two. Elements stay in their warps. Returns nothing when `layout` has too few elements along `dim`.
std::optional<Layout> withNeighbours(const Layout &layout, unsigned dim, int64_t count);

/// Returns the layout of the same registers under another shape, with elements in row-major order. Fails unless the
/// common factors of the two shapes are powers of two that the layout covers exactly.
llvm::Expected<Layout> reshape(const Layout &layout, llvm::ArrayRef<int64_t> fromShape,
                               llvm::ArrayRef<int64_t> toShape);

/// Tiles `inner` over the places and coordinates of `outer`. The bits of `inner` become the low bits of every part.
/// `inner` must not have repeats.
llvm::Expected<Layout> product(const Layout &inner, const Layout &outer);

/// Returns the `outer` for which product(tile, outer) is `layout`, or nothing when `tile` is not its left factor.
std::optional<Layout> divide(const Layout &layout, const Layout &tile);

/// Maps the atom bits of a place in `to` to the atom bits of the place in `from` that holds the same element. Columns
/// and rows are register, lane, warp and block bits. Free bits of `from` get zero rows. Both atoms must be equal.
BitMatrix transition(const Layout &from, const Layout &to);

/// Returns whether the layouts differ only in free bits that one of them has above all bits of that part in the other.
/// For example, a layout that replicates a tile over four warps equals the layout for a single warp.
bool equalModuloBroadcast(const Layout &left, const Layout &right);
} // namespace kpkg::layout
