// Parts of views that tensor maps can describe.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// A tile of one or two dimensions in a view, as a box in the argument of the kernel that the view is a part of.
struct TensorView {
  mlir::BlockArgument argument;
  llvm::SmallVector<mlir::Value> offsets; ///< where the box begins, in the argument's dimensions
  llvm::SmallVector<int64_t> box;         ///< its extents
  unsigned unit = 0;                      ///< the argument's dimension of stride 1
  unsigned unitOfTile = 0;                ///< the tile's
  tile::SliceOp
      slice; ///< null, or of which part of `slicedDim` the box shows elements: its offset counts from that part's begin
  unsigned slicedDim = 0; ///< the argument's; the box has several elements along it, and its stride is not 1
  WindowAttr window;      ///< how the tile's rows lie in the argument; null: as a box
  llvm::SmallVector<mlir::Value> taps; ///< by which a window is moved
};

/// Nothing when a tensor map cannot describe it: it counts bytes from a 16-byte address, in steps of 16 bytes along all
/// dimensions but one, boxes begin at multiples of 16 bytes along that one, and what lies outside of the view must fit
/// 32-bit coordinates.
std::optional<TensorView> tensorView(mlir::Value view, mlir::ValueRange offsets, llvm::ArrayRef<int64_t> tile);
/// The same for a gather by windows, whose offsets and taps are left open, and for what becomes of it.
std::optional<TensorView> tensorView(tile::GatherOp gather);
std::optional<TensorView> tensorView(Im2colLoadOp load);
} // namespace kpkg::kgpu
