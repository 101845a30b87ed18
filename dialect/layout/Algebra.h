// New layouts from old ones: slices, broadcasts, products, quotients, permutations, reshapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::layout {
/// The layout of a value that is the same along `dim`: extent 1 there, bits and repeats along it become free or, in
/// registers, vanish. A reduction along `dim` leaves its result so; a broadcast along `dim` reads its operand so. Rank
/// stays. Error when a basis lies in `dim` and in another dimension.
llvm::Expected<Layout> slice(const Layout &layout, unsigned dim);

/// Without dimension `dim`, which must have extent 1.
Layout removeDim(const Layout &layout, unsigned dim);

/// With a new dimension of extent 1 before dimension `dim`.
Layout insertDim(const Layout &layout, unsigned dim);

/// A layout of extent at least `extent` along `dim`, whose slice is `layout` up to registers: the elements are spread
/// over free lane bits, then free warp bits, then registers. `layout` must have extent 1 along `dim`.
Layout broadcast(const Layout &layout, unsigned dim, int64_t extent);

/// Dimension i of the result is dimension permutation[i] of `layout`; registers stay where they are.
Layout permute(const Layout &layout, llvm::ArrayRef<unsigned> permutation);

/// `layout` with lane bits and register bits along `dim` exchanged, so that a thread has `count` neighbours, a power of
/// two; nothing when it has not enough elements along `dim`. Elements stay in their warps.
std::optional<Layout> withNeighbours(const Layout &layout, unsigned dim, int64_t count);

/// The layout of the same registers seen with another shape (row-major order of elements). Error when the pieces into
/// which the shapes fall apart are not powers of two that the layout covers exactly.
llvm::Expected<Layout> reshape(const Layout &layout, llvm::ArrayRef<int64_t> fromShape,
                               llvm::ArrayRef<int64_t> toShape);

/// `inner` as a tile, laid out over places and coordinates by `outer`: inner bits are the low bits of every part.
/// `inner` may have no repeats.
llvm::Expected<Layout> product(const Layout &inner, const Layout &outer);

/// The `outer` for which product(tile, outer) is `layout`; nothing when `tile` is not its left factor.
std::optional<Layout> divide(const Layout &layout, const Layout &tile);

/// Where `to` wants the elements that `from` holds: the matrix that takes the atom bits of a place of `to` to those of
/// a place of `from` (columns and rows: register, lane, warp, block bits). Free bits of `from` get zero rows. Both
/// atoms must be equal.
BitMatrix transition(const Layout &from, const Layout &to);

/// Whether they differ only in free bits that a part of one has above all bits of that part of the other: a layout for
/// four warps that all hold the same is equal to the one for a single warp.
bool equalModuloBroadcast(const Layout &left, const Layout &right);
} // namespace kpkg::layout
