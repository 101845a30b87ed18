// Matches gathers that read a row of channels for each pixel of a window over an image (im2col).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {

/// The coordinate of a gather along one dimension of an image: pixel * stride + start + tap * step. The launch
/// determines all values except the pixel and the tap. The pixel counts up to `count` and then carries into the
/// preceding dimension. The tap is below the extent of a view's dimension.
struct WindowDimension {
  unsigned count, stride, start, step; ///< Numbers of the kernel's arguments, of type index.
  unsigned tapsArgument, tapsDim;      ///< A view argument and its dimension.
  mlir::Value pixel;                   ///< A tile with one column.
  mlir::Value offset;                  ///< A scalar integer: tap * step.
};

/// A gather of R x C elements from an argument [images, extents ..., channels]. Row r is the piece of C channels of
/// pixel number p + r that starts at the sum of `channel`. Pixels are numbered along the last extent first, then along
/// the preceding ones, then over images.
struct WindowGather {
  mlir::BlockArgument view;
  mlir::Value image; ///< A tile with one column.
  llvm::SmallVector<WindowDimension, 3> dims;
  llvm::SmallVector<mlir::Value, 2> channel; ///< Scalar integers.
};

/// Matches a gather with any fill. Returns nothing when `op` has another form.
std::optional<WindowGather> windowGather(GatherOp op);

} // namespace kpkg::tile
