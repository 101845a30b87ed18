// Implements linear maps over GF(2) on vectors of at most 64 bits, which all layouts are built on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>

namespace kpkg::layout {
/// A matrix over GF(2): column i is the image of bit i, and addition is XOR.
class BitMatrix {
public:
  BitMatrix(unsigned rows, unsigned columns) : rowCount(rows), images(columns, 0) {}
  BitMatrix(unsigned rows, llvm::ArrayRef<uint64_t> columns) : rowCount(rows), images(columns) {}
  static BitMatrix identity(unsigned size);

  unsigned rows() const { return rowCount; }
  unsigned columns() const { return images.size(); }
  uint64_t column(unsigned index) const { return images[index]; }
  void setColumn(unsigned index, uint64_t image) { images[index] = image; }
  /// Returns the mask of the argument bits whose XOR is output bit `index`.
  uint64_t row(unsigned index) const;
  bool operator==(const BitMatrix &other) const = default;

  uint64_t apply(uint64_t bits) const;
  /// Composes the maps: applies `inner` first, then this map.
  BitMatrix compose(const BitMatrix &inner) const;
  /// Returns rows [first, first + count).
  BitMatrix rowRange(unsigned first, unsigned count) const;
  /// Returns columns [first, first + count).
  BitMatrix columnRange(unsigned first, unsigned count) const;
  /// Concatenates the columns of this matrix and `other`, which must have the same number of rows.
  BitMatrix beside(const BitMatrix &other) const;
  /// Stacks this matrix above `other`, which must have the same number of columns.
  BitMatrix above(const BitMatrix &other) const;

  unsigned rank() const;
  /// Returns a basis of the null space.
  llvm::SmallVector<uint64_t> kernel() const;
  /// Returns an argument with this image, with zeros in unneeded bits, or nothing when none exists.
  std::optional<uint64_t> solve(uint64_t image) const;
  /// Returns X with X * this = identity. It exists when the map is injective.
  std::optional<BitMatrix> leftInverse() const;
  /// Returns X with this * X = identity. It exists when the map is surjective.
  std::optional<BitMatrix> rightInverse() const;

private:
  unsigned rowCount;
  llvm::SmallVector<uint64_t, 16> images;
};

/// An incrementally built span of vectors: tells whether a vector is a linear combination of those added so far.
class BitSpan {
public:
  /// Adds `vector`. Returns false when the span already contained it.
  bool add(uint64_t vector);
  bool contains(uint64_t vector) const { return reduce(vector) == 0; }
  unsigned dimension() const { return reduced.size(); }

private:
  uint64_t reduce(uint64_t vector) const;
  llvm::SmallVector<uint64_t, 16> reduced;
};
} // namespace kpkg::layout
