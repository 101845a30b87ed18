// Derives the layout of a part of a tile from the layout of the tile, and the reverse, such that no element moves.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Extraction.h"
#include "dialect/layout/Fields.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace kpkg::layout {
namespace {
std::optional<Layout> layoutOf(Layout::Fields fields) {
  return llvm::expectedToOptional(Layout::get(std::move(fields)));
}

bool isWhole(const Range &range) { return range.offset == 0 && range.step == 1 && range.size == range.whole; }

/// Returns the bits of a coordinate in the whole tile that count the elements of the range. Fails unless all other bits
/// are the same in all elements.
std::optional<int64_t> countingBits(const Range &range) {
  if (!llvm::isPowerOf2_64(range.size) || !llvm::isPowerOf2_64(range.whole) || range.step < 1 ||
      !llvm::isPowerOf2_64(range.step))
    return std::nullopt;
  int64_t bits = (range.size - 1) * range.step;
  return range.offset & bits ? std::nullopt : std::optional<int64_t>(bits);
}

bool isOnlyAlong(const Layout::Basis &basis, unsigned dim) {
  return llvm::all_of(llvm::enumerate(basis), [&](auto entry) { return entry.index() == dim || entry.value() == 0; });
}

/// Returns whether a thread holds all elements along a dimension, or none.
bool isSerial(const Layout::Fields &fields, unsigned dim) {
  for (Part part : parts)
    for (const Layout::Basis &basis : fields.bases[static_cast<unsigned>(part)])
      if (basis[dim] != 0 && (part != Part::Register || !isOnlyAlong(basis, dim)))
        return false;
  return true;
}

/// Makes `extent` elements along a serial dimension repeats.
void repeat(Layout::Fields &fields, unsigned dim, int64_t extent) {
  llvm::erase_if(fields.bases[0], [&](const Layout::Basis &basis) { return basis[dim] != 0; });
  fields.repeats[dim] = extent;
}

/// Keeps the bits of the coordinate along `dim` that count, which become the low ones. Returns false if another bit
/// tells threads apart.
bool keepBits(Layout::Fields &fields, unsigned dim, int64_t counting, int64_t step) {
  for (Part part : parts) {
    Layout::Bases &bases = fields.bases[static_cast<unsigned>(part)], kept;
    for (Layout::Basis &basis : bases) {
      bool isConstant = basis[dim] != 0 && (basis[dim] & counting) == 0;
      if (isConstant && part == Part::Register && isOnlyAlong(basis, dim))
        continue;
      if (basis[dim] & ~counting)
        return false;
      basis[dim] /= step;
      kept.push_back(basis);
    }
    bases = std::move(kept);
  }
  return true;
}
} // namespace

std::optional<Layout> extract(const Layout &whole, llvm::ArrayRef<Range> ranges) {
  Layout::Fields fields = fieldsOf(whole);
  for (auto [dim, range] : llvm::enumerate(ranges)) {
    if (isWhole(range))
      continue;
    if (isSerial(fields, dim)) {
      repeat(fields, dim, range.size);
      continue;
    }
    std::optional<int64_t> counting = countingBits(range);
    if (!counting || whole.atom()[dim] != range.whole || whole.repeats()[dim] != 1 ||
        !keepBits(fields, dim, *counting, range.step))
      return std::nullopt;
  }
  return layoutOf(std::move(fields));
}

std::optional<Layout> enclose(const Layout &part, llvm::ArrayRef<Range> ranges, unsigned mostRegisters) {
  Layout::Fields fields = fieldsOf(part);
  for (auto [dim, range] : llvm::enumerate(ranges)) {
    if (isWhole(range))
      continue;
    std::optional<int64_t> counting = countingBits(range);
    if (!counting || part.atom()[dim] != range.size || part.repeats()[dim] != 1) {
      if (!isSerial(fields, dim))
        return std::nullopt;
      repeat(fields, dim, range.whole);
      continue;
    }
    for (Layout::Bases &bases : fields.bases)
      for (Layout::Basis &basis : bases)
        basis[dim] *= range.step;
    for (int64_t bit = 1; bit < range.whole; bit *= 2)
      if (!(*counting & bit))
        fields.bases[0].emplace_back(part.rank(), 0)[dim] = bit;
  }
  std::optional<Layout> result = layoutOf(std::move(fields));
  return result && result->registers() <= mostRegisters && extract(*result, ranges) == part ? result : std::nullopt;
}
} // namespace kpkg::layout
