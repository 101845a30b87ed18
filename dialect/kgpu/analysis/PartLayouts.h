// Tells for parts of tiles in which layouts threads hold all elements of their results.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/layout/Extraction.h"
#include <vector>

namespace kpkg::kgpu {
/// Returns the shape of a tile.
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value tile) {
  return mlir::cast<mlir::RankedTensorType>(tile.getType()).getShape();
}

/// Returns the layout of a tile of shape `small` that is broadcast to a tile of shape `large` with this layout. It is
/// sliced along the dimensions in which only `small` has extent 1.
llvm::Expected<layout::Layout> sliced(layout::Layout layout, llvm::ArrayRef<int64_t> small,
                                      llvm::ArrayRef<int64_t> large);

/// Returns the elements that the op takes along each dimension.
llvm::SmallVector<layout::Range> rangesOf(tile::ExtractOp op);
/// Returns the elements of the result that each part of the join becomes.
llvm::SmallVector<llvm::SmallVector<layout::Range>> rangesOf(tile::JoinOp op);

/// Returns a layout of the whole tile in which threads hold what they hold of a part. Registers are limited, because
/// the other elements take some.
std::optional<layout::Layout> enclosing(const layout::Layout &part, llvm::ArrayRef<layout::Range> ranges);
/// Returns the layouts of all parts in which threads hold their elements of the result.
std::optional<std::vector<layout::Layout>> layoutsOfParts(tile::JoinOp op, const layout::Layout &result);

/// Returns whether each thread holds the elements of its result, so that registers are only renamed.
bool renamesRegisters(tile::ExtractOp op);
bool renamesRegisters(tile::JoinOp op);
} // namespace kpkg::kgpu
