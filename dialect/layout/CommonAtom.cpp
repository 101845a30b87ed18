// Converts repeats of a layout to bits of a larger atom.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/CommonAtom.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace kpkg::layout {
llvm::SmallVector<int64_t, 4> commonAtom(const Layout &left, const Layout &right) {
  llvm::SmallVector<int64_t, 4> result;
  for (auto [a, b] : llvm::zip_equal(left.atom(), right.atom()))
    result.push_back(std::max(a, b));
  return result;
}

WideLayout::WideLayout(const Layout &layout, llvm::ArrayRef<int64_t> atom) : layout(layout) {
  llvm::SmallVector<unsigned, 4> firstRows;
  unsigned rows = 0;
  for (unsigned dim = 0; dim < atom.size(); ++dim) {
    ratios.push_back(atom[dim] / layout.atom()[dim]);
    wideRepeats.push_back(llvm::divideCeil(layout.repeats()[dim], ratios[dim]));
    firstRows.push_back(rows);
    rows += bitsOf(atom[dim]);
  }
  auto image = [&](const Layout::Basis &basis) {
    uint64_t result = 0;
    for (unsigned dim = 0; dim < atom.size(); ++dim)
      result |= uint64_t(basis[dim]) << firstRows[dim];
    return result;
  };
  llvm::SmallVector<uint64_t, 24> columns;
  for (const Layout::Basis &basis : layout.bases(Part::Register))
    columns.push_back(image(basis));
  for (unsigned dim = 0; dim < atom.size(); ++dim)
    for (int64_t step = layout.atom()[dim]; step < atom[dim]; step *= 2)
      columns.push_back(uint64_t(step) << firstRows[dim]);
  slotBitCount = columns.size();
  for (Part part : {Part::Lane, Part::Warp, Part::Block})
    for (const Layout::Basis &basis : layout.bases(part))
      columns.push_back(image(basis));
  wideMatrix = BitMatrix(rows, columns);
  wideInverse = *wideMatrix.rightInverse();
}

std::optional<unsigned> WideLayout::registerAt(llvm::ArrayRef<int64_t> repeat, unsigned slot) const {
  unsigned reg = slot % layout.atomRegisters();
  slot /= layout.atomRegisters();
  for (unsigned dim = 0; dim < repeat.size(); ++dim) {
    int64_t narrow = repeat[dim] * ratios[dim] + slot % ratios[dim];
    slot /= ratios[dim];
    if (narrow >= layout.repeats()[dim])
      return std::nullopt;
    reg += narrow * layout.repeatStride(dim);
  }
  return reg;
}
} // namespace kpkg::layout
