// Determines whether views share memory: elements of one view, or two views.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Views.h"
#include <algorithm>

namespace kpkg::plan {

namespace {

/// A view as bytes: a start, and dimensions with positive byte stride and extent > 1, longest stride first. The last
/// dimension is the element itself (stride 1, extent = its bytes).
struct Lattice {
  int64_t start = 0;
  int rank = 0;
  std::array<int64_t, maxRank + 1> extents, strides;

  /// Returns the bytes from the start to the end of the last byte, for dimensions from `from` on.
  int64_t span(int from) const {
    int64_t bytes = 1;
    for (int i = from; i < rank; ++i)
      bytes += (extents[i] - 1) * strides[i];
    return bytes;
  }
};

/// Returns false if the view has no element.
bool latticeOf(const View &view, int64_t base, Lattice &out) {
  int64_t size = dtypeBytes(view.dtype);
  out.start = base + view.offset * size;
  std::array<std::pair<int64_t, int64_t>, maxRank> dims;
  int count = 0;
  for (int i = 0; i < view.rank; ++i) {
    if (view.shape[i] == 0)
      return false;
    if (view.shape[i] == 1)
      continue;
    int64_t stride = view.strides[i] * size;
    if (stride < 0) {
      out.start += stride * (view.shape[i] - 1);
      stride = -stride;
    }
    if (stride != 0) // repeats the same bytes
      dims[count++] = {stride, view.shape[i]};
  }
  std::sort(dims.begin(), dims.begin() + count, std::greater<>());
  for (int i = 0; i < count; ++i) {
    out.strides[i] = dims[i].first;
    out.extents[i] = dims[i].second;
  }
  out.rank = count;
  out.strides[out.rank] = 1;
  out.extents[out.rank++] = size;
  return true;
}

/// Returns whether dimensions from `ai` of a and from `bi` of b may share a byte, if b starts `delta` bytes after a.
/// Each step can split in two. Beyond the budget it returns true, the cautious answer.
bool meet(const Lattice &a, int ai, const Lattice &b, int bi, int64_t delta, int &budget) {
  if (--budget < 0)
    return true;
  if (delta >= a.span(ai) || -delta >= b.span(bi))
    return false;
  if (ai == a.rank - 1 && bi == b.rank - 1)
    return true; // two overlapping runs of bytes
  int64_t stride = std::max(a.strides[ai], b.strides[bi]);
  bool aHas = a.strides[ai] == stride, bHas = b.strides[bi] == stride;
  int aInner = ai + aHas, bInner = bi + bHas;
  int64_t aCount = aHas ? a.extents[ai] : 1, bCount = bHas ? b.extents[bi] : 1;
  // At most two relative row positions can share bytes, but only if rows of the largest stride do not overlap.
  if (a.span(aInner) > stride || b.span(bInner) > stride)
    return true;
  int64_t row = delta / stride - (delta % stride < 0), rest = delta - row * stride;
  // In units of a's rows, b's rows are at row + [0, bCount) + rest/stride.
  auto rowsMeet = [&](int64_t shift) { return shift < aCount && -shift < bCount; };
  return (rowsMeet(row) && meet(a, aInner, b, bInner, rest, budget)) ||
         (rowsMeet(row + 1) && meet(a, aInner, b, bInner, rest - stride, budget));
}

} // namespace

bool mayOverlapItself(const View &view) {
  for (int i = 0; i < view.rank; ++i)
    if (view.shape[i] > 1 && view.strides[i] == 0)
      return view.numel() > 0;
  Lattice lattice;
  if (!latticeOf(view, 0, lattice))
    return false;
  for (int i = 0; i + 1 < lattice.rank; ++i)
    if (lattice.span(i + 1) > lattice.strides[i])
      return true;
  return false;
}

bool mayOverlap(const View &a, const View &b, int64_t distance) {
  if (distance > INT64_MAX / 2 || distance < INT64_MIN / 2)
    return false;
  Lattice la, lb;
  int budget = 256;
  if (!latticeOf(a, 0, la) || !latticeOf(b, distance, lb))
    return false;
  return meet(la, 0, lb, 0, lb.start - la.start, budget);
}

} // namespace kpkg::plan
