// Implements Gaussian elimination over GF(2).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/BitMatrix.h"
#include "llvm/ADT/bit.h"
#include <cassert>

namespace kpkg::layout {
BitMatrix BitMatrix::identity(unsigned size) {
  BitMatrix result(size, size);
  for (unsigned i = 0; i < size; ++i)
    result.images[i] = uint64_t(1) << i;
  return result;
}

uint64_t BitMatrix::row(unsigned index) const {
  uint64_t result = 0;
  for (unsigned i = 0; i < images.size(); ++i)
    result |= (images[i] >> index & 1) << i;
  return result;
}

uint64_t BitMatrix::apply(uint64_t bits) const {
  uint64_t result = 0;
  for (; bits; bits &= bits - 1)
    result ^= images[llvm::countr_zero(bits)];
  return result;
}

BitMatrix BitMatrix::compose(const BitMatrix &inner) const {
  assert(inner.rowCount == columns() && "sizes do not match");
  BitMatrix result(rowCount, inner.columns());
  for (unsigned i = 0; i < inner.columns(); ++i)
    result.images[i] = apply(inner.images[i]);
  return result;
}

BitMatrix BitMatrix::rowRange(unsigned first, unsigned count) const {
  BitMatrix result(count, columns());
  for (unsigned i = 0; i < columns(); ++i)
    result.images[i] = images[i] >> first & ((uint64_t(1) << count) - 1);
  return result;
}

BitMatrix BitMatrix::columnRange(unsigned first, unsigned count) const {
  return BitMatrix(rowCount, llvm::ArrayRef<uint64_t>(images).slice(first, count));
}

BitMatrix BitMatrix::beside(const BitMatrix &other) const {
  assert(rowCount == other.rowCount && "sizes do not match");
  BitMatrix result = *this;
  result.images.append(other.images.begin(), other.images.end());
  return result;
}

BitMatrix BitMatrix::above(const BitMatrix &other) const {
  assert(columns() == other.columns() && "sizes do not match");
  BitMatrix result(rowCount + other.rowCount, columns());
  for (unsigned i = 0; i < columns(); ++i)
    result.images[i] = images[i] | other.images[i] << rowCount;
  return result;
}

namespace {
/// Columns in echelon form: each kept column has its own leading bit, and the argument that produces it.
struct Echelon {
  struct Entry {
    uint64_t image, argument;
  };
  llvm::SmallVector<Entry, 16> entries;
  llvm::SmallVector<uint64_t, 16> kernel;

  explicit Echelon(const BitMatrix &matrix) {
    for (unsigned i = 0; i < matrix.columns(); ++i) {
      Entry entry = reduce({matrix.column(i), uint64_t(1) << i});
      if (entry.image)
        entries.push_back(entry);
      else
        kernel.push_back(entry.argument);
    }
  }

  Entry reduce(Entry entry) const {
    for (const Entry &known : entries)
      if (entry.image >> (63 - llvm::countl_zero(known.image)) & 1)
        entry = {entry.image ^ known.image, entry.argument ^ known.argument};
    return entry;
  }
};
} // namespace

unsigned BitMatrix::rank() const { return Echelon(*this).entries.size(); }

llvm::SmallVector<uint64_t> BitMatrix::kernel() const {
  Echelon echelon(*this);
  return llvm::SmallVector<uint64_t>(echelon.kernel.begin(), echelon.kernel.end());
}

std::optional<uint64_t> BitMatrix::solve(uint64_t image) const {
  Echelon::Entry rest = Echelon(*this).reduce({image, 0});
  if (rest.image)
    return std::nullopt;
  return rest.argument;
}

std::optional<BitMatrix> BitMatrix::rightInverse() const {
  Echelon echelon(*this);
  BitMatrix result(columns(), rowCount);
  for (unsigned i = 0; i < rowCount; ++i) {
    Echelon::Entry rest = echelon.reduce({uint64_t(1) << i, 0});
    if (rest.image)
      return std::nullopt;
    result.images[i] = rest.argument;
  }
  return result;
}

std::optional<BitMatrix> BitMatrix::leftInverse() const {
  // X * this = identity holds exactly when the transpose of X is a right inverse of the transpose of this matrix.
  BitMatrix transposed(columns(), rowCount);
  for (unsigned i = 0; i < rowCount; ++i)
    transposed.images[i] = row(i);
  std::optional<BitMatrix> inverse = transposed.rightInverse();
  if (!inverse)
    return std::nullopt;
  BitMatrix result(columns(), rowCount);
  for (unsigned i = 0; i < rowCount; ++i)
    result.images[i] = inverse->row(i);
  return result;
}

bool BitSpan::add(uint64_t vector) {
  vector = reduce(vector);
  if (vector)
    reduced.push_back(vector);
  return vector != 0;
}

uint64_t BitSpan::reduce(uint64_t vector) const {
  for (uint64_t known : reduced)
    if (vector >> (63 - llvm::countl_zero(known)) & 1)
      vector ^= known;
  return vector;
}
} // namespace kpkg::layout
