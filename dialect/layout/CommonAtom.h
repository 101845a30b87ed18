// Widens two layouts to a common atom, so that they can be compared bit by bit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::layout {
/// Returns the smallest atom that contains the atoms of both layouts.
llvm::SmallVector<int64_t, 4> commonAtom(const Layout &left, const Layout &right);

/// A view of `layout` in which some repeats become bits above the register bits. Register bits and these bits number
/// "slots". The view assumes that the repeats fill the larger atom, so a slot may have no register.
class WideLayout {
public:
  WideLayout(const Layout &layout, llvm::ArrayRef<int64_t> atom);

  unsigned slotBits() const { return slotBitCount; }
  unsigned slots() const { return 1u << slotBitCount; }
  llvm::ArrayRef<int64_t> repeats() const { return wideRepeats; }
  /// Returns the atom as a matrix. Columns: slot, lane, warp, block bits; rows: coordinate bits of the larger atom.
  const BitMatrix &matrix() const { return wideMatrix; }
  /// Returns the inverse of matrix(), with zeros in free bits; see Layout::inverse().
  const BitMatrix &inverse() const { return wideInverse; }
  /// Returns the register of a slot in the given repeat, or nothing when the slot lies beyond the layout.
  std::optional<unsigned> registerAt(llvm::ArrayRef<int64_t> repeat, unsigned slot) const;

private:
  const Layout &layout;
  llvm::SmallVector<int64_t, 4> ratios, wideRepeats;
  unsigned slotBitCount;
  BitMatrix wideMatrix{0, 0}, wideInverse{0, 0};
};
} // namespace kpkg::layout
