// Which thread holds which element of a tile in which register: a linear map over GF(2) with integer repeats.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor at the kgpu level is spread over the registers of many threads. A place is (register, lane, warp, block):
// a register of a thread, a lane of a warp, a warp of a CTA, a CTA of a cluster. A Layout maps places to coordinates.
//
// The atom. Take the bits of lane, warp, block and of the low part of the register number. Each bit has a basis: the
// coordinates that it adds when it is 1. Coordinates add by XOR, so the place with several bits set is the XOR of their
// bases. A basis of zero means that the bit does not matter: threads that differ only there hold the same elements
// (replicas). All other bases are independent and together reach every coordinate of the atom, whose extent in each
// dimension is a power of two. So every element of the atom is held exactly once, but for replicas.
//
// The repeats. A tile of 5120 or 96 elements is no power of two: the atom is laid side by side repeats[d] times in
// dimension d, every time in further registers of the same thread. The register number is
//   atom register + atom registers * (repeat number), the dimension order[0] varying fastest in the repeat number.
//
// Example: a 4x24 tile on four lanes.
//   bits        basis (row, column)
//   register 0  (0, 1)              columns:   0    1    2    3    4    5    6    7  |  8    9 ...
//   lane 0      (0, 2)              row 0     l0r0 l0r1 l1r0 l1r1 l2r0 l2r1 l3r0 l3r1| l0r8 l0r9      repeat 1 in
//   lane 1      (0, 4)              row 1     l0r2 l0r3 l1r2 l1r3 l2r2 ...           | l0r10          dimension 1
//   register 1  (1, 0)              row 2     l0r4 l0r5 ...                          |
//   register 2  (2, 0)              row 3     l0r6 l0r7 ...                          |
//   atom 4x8, repeats 1x3, 24 registers: text `reg 1:1 0:1-2 lane 1:2-4 rep 1x3`
// Here lanes hold vectors of two elements, four lanes share a row. A sum over dimension 1 adds registers r, r^1 and the
// repeats in the thread, then exchanges over lane bits 0 and 1; its result has the layout slice(layout, 1): dimension 1
// has extent 1, both lane bits became free (`reg 0:1-2 lane *2 rep 1x1`), so each of the four lanes holds each row's
// sum, as a broadcast back over dimension 1 needs it.
//
// Padding. atom * repeats may be larger than the tensor: places whose coordinates lie outside hold nothing of meaning.
//
// Canonical form. A repeat by two of the fastest repeated dimension is the same as one more register bit. get() always
// turns such repeats into bits, so that two layouts are equal exactly when they put the same coordinates into the same
// places.
#pragma once
#include "dialect/layout/BitMatrix.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <optional>
#include <string>

namespace kpkg::layout {
using Coordinates = llvm::SmallVector<int64_t, 4>;

/// The four parts of a place, slowest last.
enum class Part : unsigned { Register, Lane, Warp, Block };
inline constexpr unsigned partCount = 4;
inline constexpr std::array<Part, partCount> parts = {Part::Register, Part::Lane, Part::Warp, Part::Block};

/// Where an element is.
struct Place {
  unsigned reg = 0, lane = 0, warp = 0, block = 0;
  bool operator==(const Place &other) const = default;
};

/// An immutable layout; see the head of this file.
class Layout {
public:
  /// What a bit adds: one coordinate for each dimension; all zero = free bit.
  using Basis = llvm::SmallVector<int32_t, 4>;
  using Bases = llvm::SmallVector<Basis, 6>;
  struct Fields {
    /// Indexed by Part; bit i of the part has basis i. Registers: bits of the atom only.
    std::array<Bases, partCount> bases;
    /// One for each dimension, at least 1.
    llvm::SmallVector<int64_t, 4> repeats;
    /// All dimensions, fastest repeat first; empty = last dimension fastest.
    llvm::SmallVector<unsigned, 4> order;
  };

  /// The layout, in canonical form, or why there is none (wrong rank, dependent bases, free register bit, hole in the
  /// atom, more than 5 lane bits, order not a permutation, ...).
  static llvm::Expected<Layout> get(Fields fields);
  /// The same where failure is a bug of the caller.
  static Layout make(Fields fields);

  bool operator==(const Layout &other) const;
  friend llvm::hash_code hash_value(const Layout &layout);

  /// `reg 1:1-4 lane 1:8-128 warp 0:1 *  rep 1x3 order 0,1`, always with one blank between words.
  /// A word per run of bits: `d:a` basis a in dimension d; `d:a-b` the doubling bases a, 2a, ... b; `0:1+1:4` a basis
  /// in two dimensions; `*` a free bit, `*3` three. A part without bits is left out. `rep` gives rank and repeats (`rep
  /// none` for rank 0); `order` stands there only when it is not last dimension fastest.
  std::string str() const;
  /// Reads str()'s form; a part may be written in several runs. An error names the word that is wrong.
  static llvm::Expected<Layout> parse(llvm::StringRef text);

  unsigned rank() const { return fields.repeats.size(); }
  llvm::ArrayRef<Basis> bases(Part part) const { return fields.bases[static_cast<unsigned>(part)]; }
  unsigned bits(Part part) const { return bases(part).size(); }
  llvm::ArrayRef<int64_t> repeats() const { return fields.repeats; }
  llvm::ArrayRef<unsigned> order() const { return fields.order; }
  /// Extents of the atom, powers of two.
  llvm::ArrayRef<int64_t> atom() const { return atomShape; }
  /// atom * repeats.
  llvm::SmallVector<int64_t, 4> shape() const;
  /// Whether a tensor of this shape fits: same rank, no extent larger than shape()'s.
  bool covers(llvm::ArrayRef<int64_t> tensorShape) const;

  /// Registers (elements) of one thread.
  unsigned registers() const;
  /// Registers of the atom: 1 << bits(Part::Register).
  unsigned atomRegisters() const { return 1u << bits(Part::Register); }
  unsigned lanes() const { return 1u << bits(Part::Lane); }
  unsigned warps() const { return 1u << bits(Part::Warp); }
  unsigned blocks() const { return 1u << bits(Part::Block); }
  /// lanes * warps: the threads of a CTA that the layout speaks of.
  unsigned threads() const { return lanes() * warps(); }

  Coordinates coordinates(const Place &place) const;
  /// Where an element is first: the place with all free bits 0. Nothing outside shape().
  std::optional<Place> placeOf(llvm::ArrayRef<int64_t> coordinates) const;
  /// The register in which the thread (lane, warp, block) holds the element; nothing when it does not.
  std::optional<unsigned> registerOf(llvm::ArrayRef<int64_t> coordinates, unsigned lane, unsigned warp = 0,
                                     unsigned block = 0) const;
  /// Whether the element at this place is in a tensor of this shape (not padding).
  bool isInside(const Place &place, llvm::ArrayRef<int64_t> tensorShape) const;

  /// Mask of the free bits of a part: those that replicate. Never any of Part::Register.
  unsigned freeBits(Part part) const;
  /// Whether any part has a free bit.
  bool isReplicated() const;
  /// Mask of the bits of a part that move along dimension `dim`.
  unsigned bitsAlong(Part part, unsigned dim) const;

  /// Registers grouped into vectors along `dim`: each group holds 2^k elements at neighbouring coordinates, in
  /// ascending order, the first at a multiple of 2^k, the same in every thread; 2^k is the largest with 2^k <=
  /// maxElements. Groups in ascending order of their first register. All of one element when nothing is contiguous.
  llvm::SmallVector<llvm::SmallVector<unsigned, 8>> vectors(unsigned dim, unsigned maxElements) const;
  /// The 2^k of vectors().
  unsigned vectorLength(unsigned dim, unsigned maxElements) const;

  /// The atom as a matrix. Columns: register, lane, warp, block bits; rows: the coordinate bits of dimension 0, 1, ...
  const BitMatrix &matrix() const { return forward; }
  /// From coordinate bits to place bits; free bits get 0. matrix().compose(inverse()) is the identity.
  const BitMatrix &inverse() const { return backward; }
  /// First row of dimension `dim` in matrix().
  unsigned firstRow(unsigned dim) const;
  /// First column of a part in matrix().
  unsigned firstColumn(Part part) const;
  /// How much the register number grows from one repeat along `dim` to the next.
  unsigned repeatStride(unsigned dim) const;

private:
  Layout() = default;
  uint64_t pack(llvm::ArrayRef<int64_t> coordinates) const;
  unsigned repeatRegister(llvm::ArrayRef<int64_t> coordinates) const;
  Fields fields;
  llvm::SmallVector<int64_t, 4> atomShape;
  /// matrix() and its right inverse, zero in free bits: looked up for every element of a tile.
  BitMatrix forward{0, 0}, backward{0, 0};
};

/// Bits that are needed to count to `size` - 1; `size` must be a power of two.
unsigned bitsOf(int64_t size);
} // namespace kpkg::layout
