// Chooses a swizzle without bank conflicts for a scratch tile that is stored in one layout and loaded in another.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bits of an offset are, from the low end: bytes of an element, elements of a vector, bank, segment. Each offset
// bit corresponds to a vector of coordinate bits, and these vectors form a basis. Two lanes of one pass conflict when
// their coordinates differ only in segment vectors. So segment vectors are chosen outside the span of the lanes of a
// pass, for the storing and the loading layout at once. A choice exists as long as neither span is the whole space.
// Given one vector outside each span, one of the two or their sum lies outside both spans.
#include "dialect/layout/CommonAtom.h"
#include "dialect/layout/Shared.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>

namespace kpkg::layout {
namespace {
using Vectors = llvm::SmallVector<uint64_t, 16>;

/// The register and lane bases of a layout, in coordinates of the common atom.
struct Side {
  Vectors registers, lanes;
  BitSpan registerSpan;

  explicit Side(const Layout &layout, llvm::ArrayRef<int64_t> atom) {
    WideLayout wide(layout, atom);
    for (unsigned i = 0; i < wide.slotBits(); ++i) {
      registers.push_back(wide.matrix().column(i));
      registerSpan.add(registers.back());
    }
    for (unsigned i = 0; i < layout.bits(Part::Lane); ++i)
      lanes.push_back(wide.matrix().column(wide.slotBits() + i));
  }

  /// Returns the span that segment vectors must avoid: lanes of a pass, and offset bits below the bank bits.
  BitSpan reach(llvm::ArrayRef<uint64_t> low, unsigned elementBytes) const {
    unsigned length = 0;
    while (length < low.size() && registerSpan.contains(low[length]))
      ++length;
    unsigned bytes = elementBytes << length, lanesInPass = bytes <= 4 ? 5 : bytes == 8 ? 4 : 3;
    BitSpan span;
    for (unsigned i = 0; i < low.size() && (i < length || elementBytes << i < 4); ++i)
      span.add(low[i]);
    for (unsigned i = 0; i < lanes.size() && i < lanesInPass; ++i)
      span.add(lanes[i]);
    return span;
  }
};

/// Returns a basis of the intersection of the spans. It prefers vectors that occur in both lists.
Vectors intersection(const Side &left, const Side &right) {
  Vectors result;
  BitSpan found;
  for (uint64_t vector : left.registers)
    if (right.registerSpan.contains(vector) && found.add(vector))
      result.push_back(vector);
  BitMatrix both(64, left.registers);
  both = both.beside(BitMatrix(64, right.registers));
  for (uint64_t argument : both.kernel()) {
    uint64_t vector = 0;
    for (unsigned i = 0; i < left.registers.size(); ++i)
      if (argument >> i & 1)
        vector ^= left.registers[i];
    if (found.add(vector))
      result.push_back(vector);
  }
  return result;
}

/// Appends vectors of `more` that are linearly independent of `low`, up to `count` vectors in total.
Vectors extend(Vectors low, llvm::ArrayRef<uint64_t> more, unsigned count) {
  if (low.size() > count)
    low.truncate(count);
  BitSpan span;
  for (uint64_t vector : low)
    span.add(vector);
  for (uint64_t vector : more)
    if (low.size() < count && span.add(vector))
      low.push_back(vector);
  return low;
}

/// Returns up to `count` vectors that lie in neither `left` nor `right`.
Vectors chooseSegments(unsigned count, llvm::ArrayRef<uint64_t> low, BitSpan left, BitSpan right, unsigned bits) {
  BitSpan taken;
  for (uint64_t vector : low)
    taken.add(vector);
  Vectors result;
  while (result.size() < count) {
    std::optional<uint64_t> outsideLeft, outsideRight, outsideBoth, any;
    for (unsigned i = bits; i-- > 0;) {
      uint64_t unit = uint64_t(1) << i;
      bool inLeft = left.contains(unit), inRight = right.contains(unit);
      if (!inLeft && !inRight && !outsideBoth)
        outsideBoth = unit;
      if (!inLeft && !outsideLeft)
        outsideLeft = unit;
      if (!inRight && !outsideRight)
        outsideRight = unit;
      if (!taken.contains(unit) && !any)
        any = unit;
    }
    uint64_t choice = outsideBoth                   ? *outsideBoth
                      : outsideLeft && outsideRight ? *outsideLeft ^ *outsideRight
                      : outsideLeft                 ? *outsideLeft
                      : outsideRight                ? *outsideRight
                                                    : *any;
    if (!taken.add(choice)) {
      // The choice lies outside one side's span, but the vectors placed so far generate it. A span lacks the offset
      // bits that number banks.
      choice = *any;
      taken.add(choice);
    }
    left.add(choice);
    right.add(choice);
    result.push_back(choice);
  }
  return result;
}

/// Builds the map whose offset bits correspond to `low`, then banks, then segments.
SharedLayout build(const Layout &store, const Layout &load, llvm::ArrayRef<int64_t> atom, unsigned elementBytes,
                   const Vectors &low, const Vectors &segments) {
  unsigned bits = 0;
  for (int64_t size : atom)
    bits += bitsOf(size);
  BitSpan taken;
  Vectors basis = low;
  for (uint64_t vector : low)
    taken.add(vector);
  for (uint64_t vector : segments)
    taken.add(vector);
  for (unsigned i = 0; i < bits; ++i)
    if (taken.add(uint64_t(1) << i))
      basis.push_back(uint64_t(1) << i);
  basis.append(segments.rbegin(), segments.rend());
  BitMatrix toOffset = *BitMatrix(bits, basis).rightInverse();

  SharedLayout::Fields fields;
  fields.elementBytes = elementBytes;
  unsigned row = 0;
  int64_t stride = int64_t(elementBytes) << bits;
  WideLayout wideStore(store, atom), wideLoad(load, atom);
  for (unsigned dim = 0; dim < atom.size(); ++dim) {
    auto &bases = fields.bases.emplace_back();
    for (unsigned i = 0; i < bitsOf(atom[dim]); ++i)
      bases.push_back(toOffset.column(row++) * elementBytes);
    fields.repeats.push_back(std::max(wideStore.repeats()[dim], wideLoad.repeats()[dim]));
  }
  fields.strides.assign(atom.size(), 0);
  for (unsigned dim = atom.size(); dim-- > 0;) {
    fields.strides[dim] = stride;
    stride *= fields.repeats[dim];
  }
  return llvm::cantFail(SharedLayout::get(std::move(fields)));
}
} // namespace

SharedLayout SharedLayout::conflictFree(const Layout &store, const Layout &load, unsigned elementBytes) {
  assert(store.rank() == load.rank() && "layouts differ in rank");
  llvm::SmallVector<int64_t, 4> atom = commonAtom(store, load);
  unsigned bits = 0;
  for (int64_t size : atom)
    bits += bitsOf(size);
  Side storing(store, atom), loading(load, atom);
  Vectors shared = intersection(storing, loading);
  unsigned longest = elementBytes >= 16 ? 0 : llvm::Log2_32(16 / elementBytes);
  unsigned inWord = elementBytes >= 4 ? 0 : llvm::Log2_32(4 / elementBytes);

  // Candidates for the low offset bits: vectors for both sides, or for one side. Lane vectors fill short candidates up
  // to a word.
  llvm::SmallVector<Vectors, 32> candidates;
  auto propose = [&](Vectors low) {
    if (!llvm::is_contained(candidates, low))
      candidates.push_back(std::move(low));
  };
  for (unsigned count = longest + 1; count-- > 0;)
    for (llvm::ArrayRef<uint64_t> more : {llvm::ArrayRef<uint64_t>(), llvm::ArrayRef<uint64_t>(loading.registers),
                                          llvm::ArrayRef<uint64_t>(storing.registers)}) {
      Vectors low = extend(shared, more, count);
      if (low.size() >= inWord) {
        propose(low);
        continue;
      }
      propose(extend(extend(low, storing.lanes, inWord), loading.lanes, inWord));
      propose(extend(extend(low, loading.lanes, inWord), storing.lanes, inWord));
    }

  std::optional<SharedLayout> best;
  unsigned bestCost = ~0u;
  for (const Vectors &low : candidates) {
    unsigned bankBits = 7 - llvm::Log2_32(elementBytes) - std::min<unsigned>(low.size(), 7);
    unsigned segmentCount = bits > low.size() + bankBits ? bits - low.size() - bankBits : 0;
    Vectors segments =
        chooseSegments(segmentCount, low, storing.reach(low, elementBytes), loading.reach(low, elementBytes), bits);
    SharedLayout candidate = build(store, load, atom, elementBytes, low, segments);
    SharedAccess write = llvm::cantFail(planAccess(store, candidate)),
                 read = llvm::cantFail(planAccess(load, candidate));
    unsigned cost = countWavefronts(write) + countWavefronts(read) + write.vectors.size() + read.vectors.size();
    if (cost < bestCost) {
      bestCost = cost;
      best = std::move(candidate);
    }
    if (write.vectorBytes == 16 && read.vectorBytes == 16 && countWavefronts(write) == idealWavefronts(write) &&
        countWavefronts(read) == idealWavefronts(read))
      break;
  }
  return *best;
}
} // namespace kpkg::layout
