// Computes views: new shapes, strides and offsets from old ones, without any memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Evaluate.h"

namespace kpkg::plan {

/// Dimensions of a shape under construction.
struct Dims {
  int rank = 0;
  std::array<int64_t, maxRank> extents{};
  std::span<const int64_t> span() const { return {extents.data(), static_cast<size_t>(rank)}; }
};

/// Functions that change a view return true, or false with `why` set (the view is then undefined). `why` completes
/// "<operation> of <tensor>: ".

/// Counts a negative `dim` from the end. Returns false if it is not within [-rank, rank).
bool wrapDim(int64_t dim, int rank, int &wrapped, std::string &why);

bool transposeView(View &view, int64_t dim0, int64_t dim1, std::string &why);
bool permuteView(View &view, std::span<const int64_t> order, std::string &why);
bool expandView(View &view, std::span<const int64_t> shape, std::string &why);
bool dropView(View &view, int64_t dim, int64_t index, std::string &why);
bool sliceView(View &view, int64_t dim, int64_t start, int64_t stop, int64_t step, std::string &why);
bool unsqueezeView(View &view, int64_t dim, std::string &why);
bool squeezeView(View &view, int64_t dim, std::string &why);
bool unfoldView(View &view, int64_t dim, int64_t size, int64_t step, std::string &why);

/// Returns [outer, extent, inner] around `dim`.
bool foldedShape(const View &view, int64_t dim, Dims &shape, std::string &why);
/// Replaces -1, and checks the number of elements.
bool reshapedShape(const View &view, std::span<const int64_t> wanted, Dims &shape, std::string &why);
/// Gives `view` another shape with the same number of elements. Returns false if strides do not allow it (the view is
/// unchanged).
bool reshapeView(View &view, std::span<const int64_t> shape);

bool broadcastShapes(std::span<const int64_t> lhs, std::span<const int64_t> rhs, Dims &shape, std::string &why);

/// Sets row-major strides without gaps.
void setContiguous(View &view);
bool isContiguous(const View &view);
/// Computes the number of elements, counting every 0 as 1. Returns false if it is negative, or exceeds int64 in bytes
/// of the largest dtype.
bool checkedCount(std::span<const int64_t> shape, int64_t &count);
/// Computes the smallest and largest element offset of the view. Returns false on overflow. Not for views without
/// elements.
bool offsetRange(const View &view, int64_t &least, int64_t &greatest);

/// Returns whether two elements of the view may share memory. It is exact for views whose dimensions nest, such as
/// slices of dense views.
bool mayOverlapItself(const View &view);
/// Returns whether two views of the same memory may share a byte. Offsets are in elements of each view. Adding
/// `distance` to b's byte addresses makes them relative to a's origin. It is exact if both have the same strides up to
/// extent, else cautious.
bool mayOverlap(const View &a, const View &b, int64_t distance);

/// Returns a text such as "float32[2, 3]".
std::string describeView(const View &view);
/// Returns a text such as "[2, 3]".
std::string describeShape(std::span<const int64_t> shape);

} // namespace kpkg::plan
