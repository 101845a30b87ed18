// Computes views: new shapes, strides and offsets from old ones, without any memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Views.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kpkg::plan {

static void eraseDim(View &view, int dim) {
  std::copy(view.shape.begin() + dim + 1, view.shape.begin() + view.rank, view.shape.begin() + dim);
  std::copy(view.strides.begin() + dim + 1, view.strides.begin() + view.rank, view.strides.begin() + dim);
  --view.rank;
}

bool wrapDim(int64_t dim, int rank, int &wrapped, std::string &why) {
  if (dim < -rank || dim >= rank) {
    why = rank == 0 ? fmt::format("dimension {} is out of range, it has no dimension", dim)
                    : fmt::format("dimension {} is out of range, expected {} to {}", dim, -rank, rank - 1);
    return false;
  }
  wrapped = static_cast<int>(dim < 0 ? dim + rank : dim);
  return true;
}

bool transposeView(View &view, int64_t dim0, int64_t dim1, std::string &why) {
  int a, b;
  if (!wrapDim(dim0, view.rank, a, why) || !wrapDim(dim1, view.rank, b, why))
    return false;
  std::swap(view.shape[a], view.shape[b]);
  std::swap(view.strides[a], view.strides[b]);
  return true;
}

bool permuteView(View &view, std::span<const int64_t> order, std::string &why) {
  if (order.size() != static_cast<size_t>(view.rank)) {
    why = fmt::format("order {} has {} entries, expected {}", describeShape(order), order.size(), view.rank);
    return false;
  }
  View old = view;
  uint32_t seen = 0;
  for (int i = 0; i < view.rank; ++i) {
    int from;
    if (!wrapDim(order[i], view.rank, from, why))
      return false;
    if (seen >> from & 1) {
      why = fmt::format("order {} names dimension {} twice", describeShape(order), from);
      return false;
    }
    seen |= 1u << from;
    view.shape[i] = old.shape[from];
    view.strides[i] = old.strides[from];
  }
  return true;
}

bool expandView(View &view, std::span<const int64_t> shape, std::string &why) {
  int rank = static_cast<int>(shape.size()), added = rank - view.rank;
  if (rank > maxRank || added < 0) {
    why = fmt::format("shape {} has rank {}, expected {} to {}", describeShape(shape), rank, view.rank, maxRank);
    return false;
  }
  View old = view;
  view.rank = rank;
  for (int i = 0; i < rank; ++i) {
    int64_t had = i < added ? 1 : old.shape[i - added];
    int64_t wanted = shape[i] == -1 && i >= added ? had : shape[i];
    if (wanted < 0 || (had != 1 && wanted != had)) {
      why = fmt::format("cannot be expanded to {}: dimension {} is {}", describeShape(shape), i, had);
      return false;
    }
    view.shape[i] = wanted;
    view.strides[i] = i < added || wanted != had ? 0 : old.strides[i - added];
  }
  int64_t count;
  if (!checkedCount(view.shapeSpan(), count)) {
    why = fmt::format("shape {} has too many elements", describeShape(shape));
    return false;
  }
  return true;
}

bool dropView(View &view, int64_t dim, int64_t index, std::string &why) {
  int d;
  if (!wrapDim(dim, view.rank, d, why))
    return false;
  int64_t extent = view.shape[d];
  if (index < -extent || index >= extent) {
    why = fmt::format("index {} is out of range for dimension {} of extent {}", index, d, extent);
    return false;
  }
  view.offset += (index < 0 ? index + extent : index) * view.strides[d];
  eraseDim(view, d);
  return true;
}

bool sliceView(View &view, int64_t dim, int64_t start, int64_t stop, int64_t step, std::string &why) {
  int d;
  if (!wrapDim(dim, view.rank, d, why))
    return false;
  if (step == 0) {
    why = "step 0 leads nowhere";
    return false;
  }
  // A reversed view begins with its last element, and ends before index -1.
  int64_t extent = view.shape[d], least = step < 0 ? -1 : 0;
  auto cut = [&](int64_t bound) {
    return std::clamp<int64_t>(bound < 0 ? bound + extent : bound, least, extent + least);
  };
  int64_t first = cut(start), last = cut(stop);
  int64_t between = step < 0 ? first - last : last - first;
  int64_t count = between > 0 ? 1 + (step < 0 ? -((between - 1) / step) : (between - 1) / step) : 0;
  if (count > 0)
    view.offset += first * view.strides[d];
  view.shape[d] = count;
  // With at least two elements, the step is less than the extent, so the product stays within the view.
  if (count > 1)
    view.strides[d] *= step;
  return true;
}

static bool insertDim(View &view, int at, int64_t extent, int64_t stride, std::string &why) {
  if (view.rank == maxRank) {
    why = fmt::format("more than {} dimensions", maxRank);
    return false;
  }
  std::copy_backward(view.shape.begin() + at, view.shape.begin() + view.rank, view.shape.begin() + view.rank + 1);
  std::copy_backward(view.strides.begin() + at, view.strides.begin() + view.rank, view.strides.begin() + view.rank + 1);
  view.shape[at] = extent;
  view.strides[at] = stride;
  ++view.rank;
  return true;
}

bool unsqueezeView(View &view, int64_t dim, std::string &why) {
  int at;
  if (!wrapDim(dim, view.rank + 1, at, why))
    return false;
  int64_t stride = 1;
  if (at < view.rank)
    stride = view.shape[at] > 1 ? view.shape[at] * view.strides[at] : view.strides[at];
  return insertDim(view, at, 1, stride, why);
}

bool squeezeView(View &view, int64_t dim, std::string &why) {
  int d;
  if (!wrapDim(dim, view.rank, d, why))
    return false;
  if (view.shape[d] != 1) {
    why = fmt::format("dimension {} has extent {}, expected 1", d, view.shape[d]);
    return false;
  }
  eraseDim(view, d);
  return true;
}

bool unfoldView(View &view, int64_t dim, int64_t size, int64_t step, std::string &why) {
  int d;
  if (!wrapDim(dim, view.rank, d, why))
    return false;
  int64_t extent = view.shape[d], stride = view.strides[d];
  if (size < 1 || size > extent || step < 1) {
    why = fmt::format("windows of {} every {} do not fit dimension {} of extent {}", size, step, d, extent);
    return false;
  }
  int64_t count = (extent - size) / step + 1;
  view.shape[d] = count;
  if (count > 1)
    view.strides[d] = stride * step;
  int64_t elements;
  if (!insertDim(view, view.rank, size, stride, why))
    return false;
  if (!checkedCount(view.shapeSpan(), elements)) {
    why = "the windows have too many elements";
    return false;
  }
  return true;
}

bool foldedShape(const View &view, int64_t dim, Dims &shape, std::string &why) {
  shape.rank = 3;
  shape.extents = {1, 1, 1};
  if (view.rank == 0 && (dim == 0 || dim == -1))
    return true;
  int d;
  if (!wrapDim(dim, view.rank, d, why))
    return false;
  for (int i = 0; i < view.rank; ++i)
    shape.extents[i < d ? 0 : i == d ? 1 : 2] *= view.shape[i];
  return true;
}

bool reshapedShape(const View &view, std::span<const int64_t> wanted, Dims &shape, std::string &why) {
  if (wanted.size() > maxRank) {
    why = fmt::format("shape {} has rank {}, more than {}", describeShape(wanted), wanted.size(), maxRank);
    return false;
  }
  shape.rank = static_cast<int>(wanted.size());
  int open = -1;
  for (int i = 0; i < shape.rank; ++i) {
    shape.extents[i] = wanted[i];
    if (wanted[i] == -1 && open < 0) {
      open = i;
      shape.extents[i] = 1;
    }
  }
  int64_t total = view.numel(), count;
  bool fits = checkedCount(shape.span(), count);
  for (int i = 0; fits && i < shape.rank; ++i)
    if (shape.extents[i] == 0)
      count = 0;
  if (fits && open >= 0 && count > 0 && total % count == 0) {
    shape.extents[open] = total / count;
    count = total;
  }
  if (!fits || count != total || (open >= 0 && count == 0 && shape.extents[open] != 0)) {
    why = fmt::format("{} elements cannot take shape {}", total, describeShape(wanted));
    return false;
  }
  return true;
}

bool reshapeView(View &view, std::span<const int64_t> shape) {
  View next = view;
  next.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), next.shape.begin());
  if (view.numel() == 0) {
    setContiguous(next);
    view = next;
    return true;
  }
  // From the last dimension on, divides each contiguous run of old dimensions into new ones.
  int to = next.rank - 1;
  for (int from = view.rank - 1; from >= 0;) {
    int64_t run = view.shape[from], step = view.strides[from];
    int outer = from - 1;
    for (; outer >= 0 && (view.shape[outer] == 1 || run == 1 || view.strides[outer] == run * step); --outer) {
      if (view.shape[outer] == 1)
        continue;
      if (run == 1)
        step = view.strides[outer];
      run *= view.shape[outer];
    }
    int64_t done = 1;
    for (; to >= 0 && (done < run || next.shape[to] == 1); --to) {
      next.strides[to] = done * step;
      done *= next.shape[to];
    }
    if (done != run)
      return false;
    from = outer;
  }
  for (; to >= 0; --to)
    next.strides[to] = 1;
  view = next;
  return true;
}

bool broadcastShapes(std::span<const int64_t> lhs, std::span<const int64_t> rhs, Dims &shape, std::string &why) {
  size_t rank = std::max(lhs.size(), rhs.size());
  if (rank > maxRank) {
    why = fmt::format("rank {}, more than {}", rank, maxRank);
    return false;
  }
  shape.rank = static_cast<int>(rank);
  for (size_t i = 0; i < rank; ++i) {
    int64_t a = i + lhs.size() < rank ? 1 : lhs[i + lhs.size() - rank];
    int64_t b = i + rhs.size() < rank ? 1 : rhs[i + rhs.size() - rank];
    if (a != b && a != 1 && b != 1) {
      why = fmt::format("shapes {} and {} do not broadcast: {} and {} in dimension {}", describeShape(lhs),
                        describeShape(rhs), a, b, i);
      return false;
    }
    shape.extents[i] = a == 1 ? b : a;
  }
  return true;
}

void setContiguous(View &view) {
  int64_t stride = 1;
  for (int i = view.rank - 1; i >= 0; --i) {
    view.strides[i] = stride;
    stride *= std::max<int64_t>(view.shape[i], 1);
  }
}

bool isContiguous(const View &view) {
  int64_t stride = 1;
  bool dense = true;
  for (int i = view.rank - 1; i >= 0; --i) {
    if (view.shape[i] == 0)
      return true;
    if (view.shape[i] == 1)
      continue;
    dense = dense && view.strides[i] == stride;
    stride *= view.shape[i];
  }
  return dense;
}

bool checkedCount(std::span<const int64_t> shape, int64_t &count) {
  // A sixteenth of the range, so that bytes of any dtype, and sums of two such numbers, still fit.
  constexpr int64_t limit = INT64_MAX / 16;
  count = 1;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, std::max<int64_t>(extent, 1), &count) || count > limit)
      return false;
  return true;
}

bool offsetRange(const View &view, int64_t &least, int64_t &greatest) {
  least = greatest = view.offset;
  for (int i = 0; i < view.rank; ++i) {
    int64_t reach;
    if (__builtin_mul_overflow(view.shape[i] - 1, view.strides[i], &reach) ||
        __builtin_add_overflow(reach < 0 ? least : greatest, reach, reach < 0 ? &least : &greatest))
      return false;
  }
  return true;
}

std::string describeShape(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string describeView(const View &view) {
  if (view.buffer < 0)
    return "None";
  return fmt::format("{}{}", dtypeName(view.dtype), describeShape(view.shapeSpan()));
}

} // namespace kpkg::plan
