// A layout seen with a larger atom, so that two layouts can be compared bit by bit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::layout {
/// The smallest atom that holds those of both layouts.
llvm::SmallVector<int64_t, 4> commonAtom(const Layout &left, const Layout &right);

/// `layout` with some of its repeats turned into bits above its register bits ("slots"), as if the repeats filled up
/// the larger atom: slots may therefore have no register.
class WideLayout {
public:
  WideLayout(const Layout &layout, llvm::ArrayRef<int64_t> atom);

  unsigned slotBits() const { return slotBitCount; }
  unsigned slots() const { return 1u << slotBitCount; }
  llvm::ArrayRef<int64_t> repeats() const { return wideRepeats; }
  /// Columns: slot, lane, warp, block bits; rows: coordinate bits of the larger atom.
  const BitMatrix &matrix() const { return wideMatrix; }
  /// Zero in free bits; see Layout::inverse().
  const BitMatrix &inverse() const { return wideInverse; }
  /// The register behind a slot of the repeat with these numbers; nothing when the layout does not reach so far.
  std::optional<unsigned> registerAt(llvm::ArrayRef<int64_t> repeat, unsigned slot) const;

private:
  const Layout &layout;
  llvm::SmallVector<int64_t, 4> ratios, wideRepeats;
  unsigned slotBitCount;
  BitMatrix wideMatrix{0, 0}, wideInverse{0, 0};
};
} // namespace kpkg::layout
