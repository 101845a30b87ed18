// Where the elements of a tile lie in shared memory: linear maps with XOR swizzles, and how threads reach them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::layout {
/// The swizzles of TMA and wgmma: 16-byte chunks of a 32/64/128-byte row are XORed with bits of the row number.
enum class Swizzle : unsigned { None = 0, B32 = 32, B64 = 64, B128 = 128 };

/// An immutable map from coordinates to byte offsets. Inside an atom (powers of two) the offset is the XOR of the bases
/// of the coordinate bits; atoms lie `strides[d]` bytes apart, `repeats[d]` times.
class SharedLayout {
public:
  struct Fields {
    unsigned elementBytes = 0;
    /// bases[d][i]: bytes that bit i of coordinate d adds (XOR).
    llvm::SmallVector<llvm::SmallVector<uint32_t, 8>, 4> bases;
    llvm::SmallVector<int64_t, 4> repeats;
    /// Bytes from one atom to the next along a dimension; 0 where repeats are 1.
    llvm::SmallVector<int64_t, 4> strides;
  };
  /// Error when two elements would share a byte or an element would not be aligned to its size.
  static llvm::Expected<SharedLayout> get(Fields fields);

  /// Plain row-major memory for a tile of this shape (any extents).
  static SharedLayout rowMajor(llvm::ArrayRef<int64_t> shape, unsigned elementBytes);
  /// What a TMA load with this swizzle leaves: a 2-D tile, cut into panels as wide as the swizzle (None: one panel),
  /// rows of a panel below each other. Error when the row is no multiple of the panel or the extents do not fit.
  static llvm::Expected<SharedLayout> tma(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, Swizzle swizzle);
  /// A private scratch for storing a tile with `store` and loading it with `load`: of the swizzles tried, the one with
  /// the least sharedCost. Covers both layouts with their padding.
  static SharedLayout conflictFree(const Layout &store, const Layout &load, unsigned elementBytes);

  bool operator==(const SharedLayout &other) const;
  friend llvm::hash_code hash_value(const SharedLayout &layout);
  /// `2B 0:128-512 1:2+16 ... rep 1x3 stride 0,4096`: for each dimension the bases of its bits in ascending order.
  std::string str() const;
  static llvm::Expected<SharedLayout> parse(llvm::StringRef text);

  unsigned rank() const { return fields.repeats.size(); }
  unsigned elementBytes() const { return fields.elementBytes; }
  const Fields &parameters() const { return fields; }
  llvm::SmallVector<int64_t, 4> atom() const;
  llvm::SmallVector<int64_t, 4> shape() const;
  /// Bytes from the first to behind the last element.
  int64_t sizeBytes() const;
  /// Needed alignment of the base address: offsets may then be XORed into addresses inside an atom.
  int64_t alignment() const;
  int64_t offset(llvm::ArrayRef<int64_t> coordinates) const;

private:
  SharedLayout() = default;
  Fields fields;
};

/// `count` of them, one behind the other, along a new first dimension.
SharedLayout withSlots(const SharedLayout &slot, int64_t count);
/// The same bytes with the two dimensions exchanged.
SharedLayout transposed(const SharedLayout &layout);

/// How the threads of a layout reach a tile in shared memory: address = base + (XOR of the bases of the thread's bits,
/// XOR vector.xorOffset) + vector.addOffset. One shared-memory instruction for each vector.
struct SharedAccess {
  struct Vector {
    /// Registers in ascending order of address.
    llvm::SmallVector<unsigned, 8> registers;
    uint32_t xorOffset = 0;
    int64_t addOffset = 0;
  };
  unsigned vectorBytes = 0;
  /// Bytes that a set bit of lane, warp, block adds by XOR; 0 for free bits.
  llvm::SmallVector<uint32_t, 5> laneBases, warpBases, blockBases;
  llvm::SmallVector<Vector> vectors;
};

/// The widest access (up to `maxVectorBytes` of 16) of a tile with layout `layout`; error when the memory's shape or
/// atom does not fit the layout (smaller atom than the layout's in a dimension that repeats). With `at`, the tile is
/// the part of the memory that begins there: multiples of the layout's shape.
llvm::Expected<SharedAccess> planAccess(const Layout &layout, const SharedLayout &memory, unsigned maxVectorBytes = 16,
                                        llvm::ArrayRef<int64_t> at = {});

/// Wavefronts (passes of 128 bytes) of one warp for the whole tile. Model: 32 banks of 4 bytes; a vector of 16 bytes
/// takes four passes of 8 lanes, 8 bytes two of 16; in a pass, different words of one bank follow each other, equal
/// words are one. Counted for warp 0 by going through the lanes.
unsigned countWavefronts(const SharedAccess &access);
/// Wavefronts if there were no conflict.
unsigned idealWavefronts(const SharedAccess &access);
/// countWavefronts from ranks of matrices: 2^(rank of words - rank of banks) for each pass.
unsigned wavefrontsByRank(const SharedAccess &access);
} // namespace kpkg::layout
