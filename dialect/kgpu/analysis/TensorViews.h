// Finds parts of views that tensor maps can describe.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/kgpu/ir/Remarks.h"

namespace kpkg::kgpu {
/// A tile of one or two dimensions in a view, as a box in the kernel argument that the view is a part of.
struct TensorView {
  mlir::BlockArgument argument;
  llvm::SmallVector<mlir::Value> offsets; ///< begin of the box, in the argument's dimensions
  llvm::SmallVector<int64_t> box;         ///< extents of the box
  unsigned unit = 0;                      ///< the argument's dimension of stride 1
  unsigned unitOfTile = 0;                ///< the tile's dimension of stride 1
  tile::SliceOp
      slice; ///< null, or the slice along `slicedDim` that holds the box: the offset counts from the slice's begin
  unsigned slicedDim = 0; ///< an argument's dimension in which the box has several elements; its stride is not 1
  WindowAttr window;      ///< how the tile's rows are gathered from the argument; null for a box
  llvm::SmallVector<mlir::Value> taps; ///< offsets of a window, in taps
};

/// Returns a reason if a tensor map cannot describe the tile. The view must begin at a 16-byte boundary, and all its
/// strides but the unit one must be multiples of 16 bytes. A box must begin at a multiple of 16 bytes along the unit
/// dimension. Coordinates outside of the view must fit 32 bits.
ResultOrWhy<TensorView> tensorView(mlir::Value view, mlir::ValueRange offsets, llvm::ArrayRef<int64_t> tile);
/// The same for an im2col gather, whose offsets and taps are left empty, and for the load that replaces it.
ResultOrWhy<TensorView> tensorView(tile::GatherOp gather);
ResultOrWhy<TensorView> tensorView(Im2colLoadOp load);
} // namespace kpkg::kgpu
