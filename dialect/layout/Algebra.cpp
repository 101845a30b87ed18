// Implements slices, broadcasts, products, quotients, permutations and reshapes of layouts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Algebra.h"
#include "dialect/layout/Fields.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>

namespace kpkg::layout {
Layout::Fields fieldsOf(const Layout &layout) {
  Layout::Fields fields;
  for (Part part : parts)
    fields.bases[static_cast<unsigned>(part)].assign(layout.bases(part).begin(), layout.bases(part).end());
  fields.repeats.assign(layout.repeats().begin(), layout.repeats().end());
  fields.order.assign(layout.order().begin(), layout.order().end());
  return fields;
}

namespace {
bool isFree(const Layout::Basis &basis) {
  return llvm::all_of(basis, [](int32_t value) { return value == 0; });
}

template <typename... Values> llvm::Error wrong(const char *format, Values &&...values) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Values>(values)...).str());
}

bool hasRepeats(const Layout &layout) {
  return llvm::any_of(layout.repeats(), [](int64_t repeat) { return repeat != 1; });
}
} // namespace

llvm::Expected<Layout> slice(const Layout &layout, unsigned dim) {
  Layout::Fields fields = fieldsOf(layout);
  for (Layout::Bases &bases : fields.bases)
    for (Layout::Basis &basis : bases) {
      bool along = std::exchange(basis[dim], 0) != 0;
      if (along && !isFree(basis))
        return wrong("layout {0} has a bit that moves along dimension {1} and another one", layout.str(), dim);
    }
  llvm::erase_if(fields.bases[0], isFree);
  fields.repeats[dim] = 1;
  return Layout::get(std::move(fields));
}

Layout removeDim(const Layout &layout, unsigned dim) {
  assert(layout.shape()[dim] == 1 && "only a dimension of extent 1 can go");
  Layout::Fields fields = fieldsOf(layout);
  for (Layout::Bases &bases : fields.bases)
    for (Layout::Basis &basis : bases)
      basis.erase(basis.begin() + dim);
  fields.repeats.erase(fields.repeats.begin() + dim);
  llvm::erase(fields.order, dim);
  for (unsigned &other : fields.order)
    other -= other > dim;
  return Layout::make(std::move(fields));
}

Layout insertDim(const Layout &layout, unsigned dim) {
  Layout::Fields fields = fieldsOf(layout);
  for (Layout::Bases &bases : fields.bases)
    for (Layout::Basis &basis : bases)
      basis.insert(basis.begin() + dim, 0);
  fields.repeats.insert(fields.repeats.begin() + dim, 1);
  for (unsigned &other : fields.order)
    other += other >= dim;
  fields.order.push_back(dim);
  return Layout::make(std::move(fields));
}

Layout broadcast(const Layout &layout, unsigned dim, int64_t extent) {
  assert(layout.shape()[dim] == 1 && "only a dimension of extent 1 can be broadcast");
  Layout::Fields fields = fieldsOf(layout);
  int64_t size = 1;
  for (Part part : {Part::Lane, Part::Warp})
    for (Layout::Basis &basis : fields.bases[static_cast<unsigned>(part)])
      if (size < extent && isFree(basis)) {
        basis[dim] = size;
        size *= 2;
      }
  fields.repeats[dim] = llvm::divideCeil(extent, size);
  llvm::erase(fields.order, dim);
  fields.order.insert(fields.order.begin(), dim);
  return Layout::make(std::move(fields));
}

Layout permute(const Layout &layout, llvm::ArrayRef<unsigned> permutation) {
  Layout::Fields fields = fieldsOf(layout), result = fields;
  for (unsigned dim = 0; dim < permutation.size(); ++dim) {
    for (unsigned part = 0; part < partCount; ++part)
      for (unsigned bit = 0; bit < fields.bases[part].size(); ++bit)
        result.bases[part][bit][dim] = fields.bases[part][bit][permutation[dim]];
    result.repeats[dim] = fields.repeats[permutation[dim]];
  }
  for (unsigned i = 0; i < permutation.size(); ++i)
    result.order[i] = llvm::find(permutation, fields.order[i]) - permutation.begin();
  return Layout::make(std::move(result));
}

namespace {
/// A group of consecutive dimensions of each shape with the same number of elements.
struct Piece {
  unsigned fromBegin, fromEnd, toBegin, toEnd;
};

llvm::SmallVector<Piece> cutIntoPieces(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  llvm::SmallVector<Piece> pieces;
  unsigned i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Piece piece = {i, i, j, j};
    int64_t left = 1, right = 1;
    // A piece takes at least one dimension of each shape that has dimensions left, and the extents of 1 that follow.
    if (i < from.size())
      left = from[i++];
    if (j < to.size())
      right = to[j++];
    while (left != right) {
      if (left < right)
        left *= from[i++];
      else
        right *= to[j++];
    }
    while (i < from.size() && from[i] == 1)
      ++i;
    while (j < to.size() && to[j] == 1)
      ++j;
    piece.fromEnd = i;
    piece.toEnd = j;
    pieces.push_back(piece);
  }
  return pieces;
}

/// Returns the first dimension of [begin, end) with more than one element, else the last one, or `end` for an empty
/// range.
unsigned outermost(llvm::ArrayRef<int64_t> shape, unsigned begin, unsigned end) {
  for (unsigned dim = begin; dim < end; ++dim)
    if (shape[dim] != 1)
      return dim;
  return begin == end ? end : end - 1;
}
} // namespace

std::optional<Layout> withNeighbours(const Layout &layout, unsigned dim, int64_t count) {
  Layout::Fields fields = fieldsOf(layout);
  auto &registers = fields.bases[static_cast<unsigned>(Part::Register)];
  auto &lanes = fields.bases[static_cast<unsigned>(Part::Lane)];
  auto isAlong = [&](const Layout::Basis &basis, int64_t value) {
    Layout::Basis wanted(layout.rank(), 0);
    wanted[dim] = value;
    return basis == wanted;
  };
  for (int64_t value = 1; value < count; value *= 2) {
    auto is = [&](const Layout::Basis &basis) { return isAlong(basis, value); };
    if (llvm::any_of(registers, is))
      continue;
    auto *lane = llvm::find_if(lanes, is);
    auto *other = llvm::find_if(
        registers, [&](const Layout::Basis &basis) { return basis[dim] >= count && isAlong(basis, basis[dim]); });
    if (lane == lanes.end() || other == registers.end())
      return std::nullopt;
    std::swap(*lane, *other);
  }
  llvm::Expected<Layout> result = Layout::get(std::move(fields));
  if (result)
    return *result;
  llvm::consumeError(result.takeError());
  return std::nullopt;
}

llvm::Expected<Layout> reshape(const Layout &layout, llvm::ArrayRef<int64_t> fromShape,
                               llvm::ArrayRef<int64_t> toShape) {
  auto product = [](llvm::ArrayRef<int64_t> shape) {
    int64_t result = 1;
    for (int64_t extent : shape)
      result *= extent;
    return result;
  };
  if (product(fromShape) != product(toShape) || !layout.covers(fromShape))
    return wrong("the shapes differ in size or the layout does not cover them");
  Layout::Fields fields = fieldsOf(layout), result;
  result.repeats.assign(toShape.size(), 1);
  for (unsigned part = 0; part < partCount; ++part)
    result.bases[part].assign(fields.bases[part].size(), Layout::Basis(toShape.size(), 0));
  llvm::SmallVector<unsigned, 4> newDim(fromShape.size(), ~0u);

  for (const Piece &piece : cutIntoPieces(fromShape, toShape)) {
    unsigned fromOuter = outermost(fromShape, piece.fromBegin, piece.fromEnd);
    unsigned toOuter = outermost(toShape, piece.toBegin, piece.toEnd);
    for (unsigned dim = piece.fromBegin; dim < piece.fromEnd; ++dim)
      if (dim != fromOuter && layout.shape()[dim] != fromShape[dim])
        return wrong("dimension {0} of layout {1} has padding", dim, layout.str());
    if (fromOuter == piece.fromEnd || toOuter == piece.toEnd) {
      if (fromOuter != piece.fromEnd && layout.shape()[fromOuter] != 1)
        return wrong("dimension {0} of layout {1} has padding", fromOuter, layout.str());
      continue;
    }
    for (unsigned dim = fromOuter + 1; dim < piece.fromEnd; ++dim)
      if (layout.repeats()[dim] != 1)
        return wrong("dimension {0} of layout {1} repeats below another one of the same piece", dim, layout.str());
    int64_t atom = 1, inner = 1;
    for (unsigned dim = fromOuter; dim < piece.fromEnd; ++dim)
      atom *= layout.atom()[dim];
    for (unsigned dim = toOuter + 1; dim < piece.toEnd; ++dim) {
      if (!llvm::isPowerOf2_64(toShape[dim]))
        return wrong("extent {0} is no power of two", toShape[dim]);
      inner *= toShape[dim];
    }
    bool single = inner == 1;
    if (!single && inner > atom)
      return wrong("the atom of layout {0} is smaller than the {1} elements of the inner dimensions", layout.str(),
                   inner);
    for (unsigned part = 0; part < partCount; ++part)
      for (unsigned bit = 0; bit < fields.bases[part].size(); ++bit) {
        int64_t flat = 0;
        for (unsigned dim = fromOuter; dim < piece.fromEnd; ++dim)
          flat = flat * layout.atom()[dim] + fields.bases[part][bit][dim];
        for (unsigned dim = piece.toEnd; dim-- > toOuter + 1;) {
          result.bases[part][bit][dim] = flat % toShape[dim];
          flat /= toShape[dim];
        }
        result.bases[part][bit][toOuter] = flat;
      }
    result.repeats[toOuter] = layout.repeats()[fromOuter];
    newDim[fromOuter] = toOuter;
  }
  for (unsigned dim : layout.order())
    if (layout.repeats()[dim] != 1)
      result.order.push_back(newDim[dim]);
  for (unsigned dim = toShape.size(); dim-- > 0;)
    if (!llvm::is_contained(result.order, dim))
      result.order.push_back(dim);
  return Layout::get(std::move(result));
}

llvm::Expected<Layout> product(const Layout &inner, const Layout &outer) {
  if (inner.rank() != outer.rank() || hasRepeats(inner))
    return wrong("the inner layout {0} has repeats or another rank than {1}", inner.str(), outer.str());
  Layout::Fields result = fieldsOf(inner);
  for (Part part : parts)
    for (Layout::Basis basis : outer.bases(part)) {
      for (unsigned dim = 0; dim < inner.rank(); ++dim)
        basis[dim] *= inner.atom()[dim];
      result.bases[static_cast<unsigned>(part)].push_back(basis);
    }
  result.repeats.assign(outer.repeats().begin(), outer.repeats().end());
  result.order.assign(outer.order().begin(), outer.order().end());
  return Layout::get(std::move(result));
}

std::optional<Layout> divide(const Layout &layout, const Layout &tile) {
  if (layout.rank() != tile.rank() || hasRepeats(tile))
    return std::nullopt;
  Layout::Fields result = fieldsOf(layout);
  for (Part part : parts) {
    llvm::ArrayRef<Layout::Basis> whole = layout.bases(part), low = tile.bases(part);
    if (whole.take_front(low.size()) != low)
      return std::nullopt;
    Layout::Bases &rest = result.bases[static_cast<unsigned>(part)];
    rest.assign(whole.begin() + low.size(), whole.end());
    for (Layout::Basis &basis : rest)
      for (unsigned dim = 0; dim < tile.rank(); ++dim) {
        if (basis[dim] % tile.atom()[dim] != 0)
          return std::nullopt;
        basis[dim] /= tile.atom()[dim];
      }
  }
  return Layout::make(std::move(result));
}

BitMatrix transition(const Layout &from, const Layout &to) {
  assert(from.atom() == to.atom() && "the atoms differ");
  return from.inverse().compose(to.matrix());
}

bool equalModuloBroadcast(const Layout &left, const Layout &right) {
  if (left.repeats() != right.repeats() || left.order() != right.order())
    return false;
  for (Part part : parts) {
    llvm::ArrayRef<Layout::Basis> shorter = left.bases(part), longer = right.bases(part);
    if (shorter.size() > longer.size())
      std::swap(shorter, longer);
    if (longer.take_front(shorter.size()) != shorter || !llvm::all_of(longer.drop_front(shorter.size()), isFree))
      return false;
  }
  return true;
}
} // namespace kpkg::layout
