// Linear maps over GF(2) between vectors of at most 64 bits: the arithmetic under every layout.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>

namespace kpkg::layout {
/// A linear map: column i is the image of bit i; addition is XOR.
class BitMatrix {
public:
  BitMatrix(unsigned rows, unsigned columns) : rowCount(rows), images(columns, 0) {}
  BitMatrix(unsigned rows, llvm::ArrayRef<uint64_t> columns) : rowCount(rows), images(columns) {}
  static BitMatrix identity(unsigned size);

  unsigned rows() const { return rowCount; }
  unsigned columns() const { return images.size(); }
  uint64_t column(unsigned index) const { return images[index]; }
  void setColumn(unsigned index, uint64_t image) { images[index] = image; }
  /// The bits of the argument that output bit `index` adds up.
  uint64_t row(unsigned index) const;
  bool operator==(const BitMatrix &other) const = default;

  uint64_t apply(uint64_t bits) const;
  /// First `inner`, then this.
  BitMatrix compose(const BitMatrix &inner) const;
  /// Rows [first, first + count) only.
  BitMatrix rowRange(unsigned first, unsigned count) const;
  /// Columns [first, first + count) only.
  BitMatrix columnRange(unsigned first, unsigned count) const;
  /// This next to `other` (same number of rows).
  BitMatrix beside(const BitMatrix &other) const;
  /// This above `other` (same number of columns).
  BitMatrix above(const BitMatrix &other) const;

  unsigned rank() const;
  /// A basis of the arguments that go to zero.
  llvm::SmallVector<uint64_t> kernel() const;
  /// An argument with this image, zero in every bit that is not needed; nothing when there is none.
  std::optional<uint64_t> solve(uint64_t image) const;
  /// X with X * this = identity: exists when no two arguments share an image.
  std::optional<BitMatrix> leftInverse() const;
  /// X with this * X = identity: exists when every vector is an image.
  std::optional<BitMatrix> rightInverse() const;

private:
  unsigned rowCount;
  llvm::SmallVector<uint64_t, 16> images;
};

/// A growing set of independent vectors: tells whether a vector is a sum of those added so far.
class BitSpan {
public:
  /// Adds `vector`; false when it was in the span already.
  bool add(uint64_t vector);
  bool contains(uint64_t vector) const { return reduce(vector) == 0; }
  unsigned dimension() const { return reduced.size(); }

private:
  uint64_t reduce(uint64_t vector) const;
  llvm::SmallVector<uint64_t, 16> reduced;
};
} // namespace kpkg::layout
