// Gathers that read a row of channels for each pixel of a window's walk over an image.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {

/// Where a gather reads along one dimension of an image: pixel * stride + start + tap * step. All of it is known when
/// the kernel is launched but the pixel, which counts to `count` and then passes on to the dimension before it, and the
/// tap, which is below the extent of a dimension of a view.
struct WindowDimension {
  unsigned count, stride, start, step; ///< numbers of the kernel's arguments, of type index
  unsigned tapsArgument, tapsDim;      ///< a view and its dimension
  mlir::Value pixel;                   ///< a tile of a column
  mlir::Value offset;                  ///< a scalar integer: tap * step
};

/// A gather of R x C elements from an argument [images, extents ..., channels]: row r is the piece of C channels from
/// the sum of `channel` on of pixel number p + r. Pixels are counted along the last extent first, then along those
/// before it, then over images.
struct WindowGather {
  mlir::BlockArgument view;
  mlir::Value image; ///< a tile of a column
  llvm::SmallVector<WindowDimension, 3> dims;
  llvm::SmallVector<mlir::Value, 2> channel; ///< scalar integers
};

/// Nothing when `op` has another form. The fill may be anything.
std::optional<WindowGather> windowGather(GatherOp op);

} // namespace kpkg::tile
