// Which tiles a CTA takes where one coordinate of a tile says how long it takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kpkg::kgpu {

/// The last coordinate of `tiles` that decides by arithmetic alone how often a loop within a tile runs; none where
/// there is none.
std::optional<unsigned> unevenCoordinate(tile::ForTilesOp tiles);

/// The loop of a CTA over its tiles, and the coordinates in it.
struct UnevenSchedule {
  mlir::scf::ForOp loop;
  llvm::SmallVector<mlir::Value> coordinates;
};

/// Deals tiles, fewer than 2^31, so that CTAs have equal sums of times that grow or fall with coordinate `dim`.
/// `counts` are not negative. A line is all that differs in that coordinate only. CTAs take its tiles in pairs, the
/// longest with the shortest and so on, line after line: what runs at the same time shares lines. Those of the last
/// lines, two to four for each CTA, come alone and longest first, from the first CTA to the last and back. Inserts
/// before `tiles`, and leaves the insertion point in the loop.
UnevenSchedule scheduleUneven(mlir::OpBuilder &builder, tile::ForTilesOp tiles, unsigned dim,
                              llvm::ArrayRef<mlir::Value> counts);

/// The same for CTAs that take tiles as they become free: `total` tiles have an order, of which CTA i takes number i, i
/// + count of CTAs, ... Lines come one after the other, each longest first, and so do the tiles of the last ones,
/// longest of all of them first.
UnevenSchedule orderUneven(mlir::OpBuilder &builder, tile::ForTilesOp tiles, unsigned dim,
                           llvm::ArrayRef<mlir::Value> counts, mlir::Value total);

} // namespace kpkg::kgpu
