// Defines linear layouts: which thread holds which element of a tile in which register.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A layout is a linear map over GF(2), extended by integer repeats. A tensor at the kgpu level is distributed over the
// registers of many threads. A place is (register, lane, warp, block). It names a register of a thread, a lane of a
// warp, a warp of a CTA and a CTA of a cluster. A Layout maps places to coordinates.
//
// The atom covers the bits of lane, warp and block, and the low bits of the register number. Each bit has a basis: the
// coordinates that it adds when it is 1. Coordinates add by XOR, so a place with several set bits has the XOR of their
// bases as its coordinates. A bit with a zero basis is free: threads that differ only in free bits hold the same
// elements (replicas). All other bases are linearly independent and generate every coordinate of the atom, whose
// extents are powers of two. So the atom holds every element exactly once, apart from replicas.
//
// The repeats cover tiles whose extents are no powers of two, such as 5120 or 96 elements. The atom is repeated
// repeats[d] times in dimension d, each time in further registers of the same thread. The register number is
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
// Lanes hold vectors of two elements, and four lanes share a row. A sum over dimension 1 adds registers r and r^1 and
// the repeats in the thread, then reduces over lane bits 0 and 1. Its result has the layout slice(layout, 1): dimension
// 1 has extent 1, and both lane bits are free (`reg 0:1-2 lane *2 rep 1x1`). So each of the four lanes holds the sums
// of its rows, as a broadcast back over dimension 1 needs them.
//
// Padding: atom * repeats may exceed the tensor. Places whose coordinates lie outside the tensor hold undefined values.
//
// Canonical form: a repeat by two of the fastest repeated dimension is equivalent to one more register bit. get()
// always converts such repeats to bits. So two layouts are equal exactly when they map the same places to the same
// coordinates.
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

/// The four parts of a place, from the fastest to the slowest.
enum class Part : unsigned { Register, Lane, Warp, Block };
inline constexpr unsigned partCount = 4;
inline constexpr std::array<Part, partCount> parts = {Part::Register, Part::Lane, Part::Warp, Part::Block};

/// The location of an element.
struct Place {
  unsigned reg = 0, lane = 0, warp = 0, block = 0;
  bool operator==(const Place &other) const = default;
};

/// An immutable layout; see the comment at the top of this file.
class Layout {
public:
  /// The coordinates that a bit adds, one for each dimension. All zeros mark a free bit.
  using Basis = llvm::SmallVector<int32_t, 4>;
  using Bases = llvm::SmallVector<Basis, 6>;
  struct Fields {
    /// Indexed by Part: bit i of the part has basis i. Register bases are those of the atom only.
    std::array<Bases, partCount> bases;
    /// The number of repeats of each dimension, at least 1.
    llvm::SmallVector<int64_t, 4> repeats;
    /// All dimensions, the fastest repeat first. Empty means that the last dimension is fastest.
    llvm::SmallVector<unsigned, 4> order;
  };

  /// Returns the layout in canonical form, or an error. Errors include a wrong rank, dependent bases, a free register
  /// bit and an atom with holes. More than 5 lane bits or an invalid order are errors too.
  static llvm::Expected<Layout> get(Fields fields);
  /// As get(), for fields that the caller knows to be valid. Failure is a bug in the caller.
  static Layout make(Fields fields);

  bool operator==(const Layout &other) const;
  friend llvm::hash_code hash_value(const Layout &layout);

  /// Prints the layout, for example `reg 1:1-4 lane 1:8-128 warp 0:1 *  rep 1x3 order 0,1`, with one blank between
  /// words. A word describes a run of bits. `d:a` is basis a in dimension d, and `d:a-b` is the doubling bases a, 2a,
  /// ... b. `0:1+1:4` is a basis in two dimensions, `*` is a free bit, and `*3` is three of them. Parts without bits
  /// are omitted. `rep` gives rank and repeats (`rep none` for rank 0). `order` is omitted when the last dimension is
  /// fastest.
  std::string str() const;
  /// Parses the form of str(), where a part may consist of several runs. An error names the wrong word.
  static llvm::Expected<Layout> parse(llvm::StringRef text);

  unsigned rank() const { return fields.repeats.size(); }
  llvm::ArrayRef<Basis> bases(Part part) const { return fields.bases[static_cast<unsigned>(part)]; }
  unsigned bits(Part part) const { return bases(part).size(); }
  llvm::ArrayRef<int64_t> repeats() const { return fields.repeats; }
  llvm::ArrayRef<unsigned> order() const { return fields.order; }
  /// Returns the extents of the atom, which are powers of two.
  llvm::ArrayRef<int64_t> atom() const { return atomShape; }
  /// Returns atom * repeats.
  llvm::SmallVector<int64_t, 4> shape() const;
  /// Returns whether a tensor of this shape fits: the same rank, and no extent larger than in shape().
  bool covers(llvm::ArrayRef<int64_t> tensorShape) const;

  /// Returns the number of registers (elements) of one thread.
  unsigned registers() const;
  /// Returns the registers of the atom: 1 << bits(Part::Register).
  unsigned atomRegisters() const { return 1u << bits(Part::Register); }
  unsigned lanes() const { return 1u << bits(Part::Lane); }
  unsigned warps() const { return 1u << bits(Part::Warp); }
  unsigned blocks() const { return 1u << bits(Part::Block); }
  /// Returns lanes * warps: the threads of a CTA that the layout covers.
  unsigned threads() const { return lanes() * warps(); }

  Coordinates coordinates(const Place &place) const;
  /// Returns the first place of an element: the one with all free bits 0. Returns nothing outside shape().
  std::optional<Place> placeOf(llvm::ArrayRef<int64_t> coordinates) const;
  /// Returns the register in which the thread (lane, warp, block) holds the element, or nothing when it does not hold
  /// it.
  std::optional<unsigned> registerOf(llvm::ArrayRef<int64_t> coordinates, unsigned lane, unsigned warp = 0,
                                     unsigned block = 0) const;
  /// Returns whether the element at this place lies inside a tensor of this shape, and not in padding.
  bool isInside(const Place &place, llvm::ArrayRef<int64_t> tensorShape) const;

  /// Returns the mask of the free bits of a part, which replicate elements. It is 0 for Part::Register.
  unsigned freeBits(Part part) const;
  /// Returns whether any part has a free bit.
  bool isReplicated() const;
  /// Returns the mask of the bits of a part that move along dimension `dim`.
  unsigned bitsAlong(Part part, unsigned dim) const;

  /// Groups registers into vectors along `dim`. Each group holds 2^k contiguous elements in ascending order, and its
  /// first coordinate is a multiple of 2^k. The groups are the same in every thread. 2^k is the largest possible power
  /// of two that is at most maxElements. Groups are in ascending order of their first register. Each group has one
  /// element when nothing is contiguous.
  llvm::SmallVector<llvm::SmallVector<unsigned, 8>> vectors(unsigned dim, unsigned maxElements) const;
  /// Returns the 2^k of vectors().
  unsigned vectorLength(unsigned dim, unsigned maxElements) const;

  /// Returns the atom as a matrix. Columns: register, lane, warp, block bits; rows: coordinate bits of dimension 0, 1,
  /// ...
  const BitMatrix &matrix() const { return forward; }
  /// Maps coordinate bits to place bits, with 0 in free bits. matrix().compose(inverse()) is the identity.
  const BitMatrix &inverse() const { return backward; }
  /// Returns the first row of dimension `dim` in matrix().
  unsigned firstRow(unsigned dim) const;
  /// Returns the first column of a part in matrix().
  unsigned firstColumn(Part part) const;
  /// Returns the distance of register numbers from one repeat along `dim` to the next.
  unsigned repeatStride(unsigned dim) const;

private:
  Layout() = default;
  uint64_t pack(llvm::ArrayRef<int64_t> coordinates) const;
  unsigned repeatRegister(llvm::ArrayRef<int64_t> coordinates) const;
  Fields fields;
  llvm::SmallVector<int64_t, 4> atomShape;
  /// matrix() and its right inverse, with zeros in free bits. They are cached because every element of a tile needs
  /// them.
  BitMatrix forward{0, 0}, backward{0, 0};
};

/// Returns the number of bits needed to count to `size` - 1. `size` must be a power of two.
unsigned bitsOf(int64_t size);
} // namespace kpkg::layout
