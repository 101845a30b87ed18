// Assigns tiles to CTAs if one coordinate of a tile decides how long the tile takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kpkg::kgpu {

/// Returns whether one of `coordinates` decides how often a loop in a tile runs. With `throughMemory`, loads may lie
/// between.
bool decideTrips(tile::ForTilesOp tiles, mlir::ValueRange coordinates, bool throughMemory);
/// Returns the last coordinate of `tiles` that decides by arithmetic alone how often a loop within a tile runs, if
/// any.
std::optional<unsigned> unevenCoordinate(tile::ForTilesOp tiles);

/// The loop of a CTA over its tiles, and the coordinates in it.
struct UnevenSchedule {
  mlir::scf::ForOp loop;
  llvm::SmallVector<mlir::Value> coordinates;
};

/// Distributes tiles, fewer than 2^31, so that CTAs have equal sums of times. The time of a tile must grow or fall
/// with coordinate `dim`. `counts` must not be negative.
///
/// A line is the set of tiles that differ in that coordinate only. CTAs take its tiles in pairs, the longest with the
/// shortest and so on, line after line, so that concurrent tiles share lines. Tiles of the last lines, two to four per
/// CTA, are taken singly and longest first, from the first CTA to the last and back.
///
/// Inserts code before `tiles`, and leaves the insertion point in the loop.
UnevenSchedule scheduleUneven(mlir::OpBuilder &builder, tile::ForTilesOp tiles, unsigned dim,
                              llvm::ArrayRef<mlir::Value> counts);

/// The same for a dynamic tile scheduler: orders `total` tiles, of which CTA i takes numbers i, i + count of CTAs, ...
/// Lines follow each other, each with its longest tile first. The last lines are merged, with the longest of all their
/// tiles first.
UnevenSchedule orderUneven(mlir::OpBuilder &builder, tile::ForTilesOp tiles, unsigned dim,
                           llvm::ArrayRef<mlir::Value> counts, mlir::Value total);

} // namespace kpkg::kgpu
