// Algebra of views: new shapes, strides and offsets out of old ones, without any memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Evaluate.h"

namespace kpkg::plan {

/// Dimensions of a shape in the making.
struct Dims {
  int rank = 0;
  std::array<int64_t, maxRank> extents{};
  std::span<const int64_t> span() const { return {extents.data(), static_cast<size_t>(rank)}; }
};

/// Every function below that changes a view returns true, or false with `why` set (the view is then undefined). `why`
/// completes
/// "<operation> of <tensor>: ".

/// `dim` counted from the end where negative; false if it is not within [-rank, rank).
bool wrapDim(int64_t dim, int rank, int &wrapped, std::string &why);

bool transposeView(View &view, int64_t dim0, int64_t dim1, std::string &why);
bool permuteView(View &view, std::span<const int64_t> order, std::string &why);
bool expandView(View &view, std::span<const int64_t> shape, std::string &why);
bool dropView(View &view, int64_t dim, int64_t index, std::string &why);
bool sliceView(View &view, int64_t dim, int64_t start, int64_t stop, int64_t step, std::string &why);
bool unsqueezeView(View &view, int64_t dim, std::string &why);
bool squeezeView(View &view, int64_t dim, std::string &why);
bool unfoldView(View &view, int64_t dim, int64_t size, int64_t step, std::string &why);

/// [outer, extent, inner] around `dim`.
bool foldedShape(const View &view, int64_t dim, Dims &shape, std::string &why);
/// Fills in -1 and checks the number of elements.
bool reshapedShape(const View &view, std::span<const int64_t> wanted, Dims &shape, std::string &why);
/// Gives `view` another shape with the same number of elements; false if strides do not allow it (the view is
/// unchanged).
bool reshapeView(View &view, std::span<const int64_t> shape);

bool broadcastShapes(std::span<const int64_t> lhs, std::span<const int64_t> rhs, Dims &shape, std::string &why);

/// Row-major strides without gaps.
void setContiguous(View &view);
bool isContiguous(const View &view);
/// Number of elements, every 0 counted as 1; false if negative or beyond int64 in bytes of the largest dtype.
bool checkedCount(std::span<const int64_t> shape, int64_t &count);
/// Least and greatest element offset that the view touches; false on overflow. Not for views without elements.
bool offsetRange(const View &view, int64_t &least, int64_t &greatest);

/// Whether two elements of the view may share memory (exact for views whose dimensions nest, as slices of dense ones
/// do).
bool mayOverlapItself(const View &view);
/// Whether two views of the same memory may share a byte. Offsets are in elements of each; `distance` is what has to be
/// added to b's byte addresses to count from a's origin. Exact where both have the same strides up to extent, else
/// cautious.
bool mayOverlap(const View &a, const View &b, int64_t distance);

/// "float32[2, 3]".
std::string describeView(const View &view);
/// "[2, 3]".
std::string describeShape(std::span<const int64_t> shape);

} // namespace kpkg::plan
