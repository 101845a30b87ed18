// Defines layouts of tiles in shared memory: linear maps with XOR swizzles, and the accesses of threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::layout {
/// The swizzles of TMA and wgmma: 16-byte chunks of a 32/64/128-byte row are XORed with bits of the row number.
enum class Swizzle : unsigned { None = 0, B32 = 32, B64 = 64, B128 = 128 };

/// An immutable map from coordinates to byte offsets. Inside an atom, whose extents are powers of two, the offset is
/// the XOR of the bases of the coordinate bits. The atom is repeated `repeats[d]` times at a distance of `strides[d]`
/// bytes.
class SharedLayout {
public:
  struct Fields {
    unsigned elementBytes = 0;
    /// bases[d][i] is the number of bytes that bit i of coordinate d adds by XOR.
    llvm::SmallVector<llvm::SmallVector<uint32_t, 8>, 4> bases;
    llvm::SmallVector<int64_t, 4> repeats;
    /// Bytes from one atom to the next along a dimension, or 0 where the number of repeats is 1.
    llvm::SmallVector<int64_t, 4> strides;
  };
  /// Fails when two elements would share a byte, or when an element would not be aligned to its size.
  static llvm::Expected<SharedLayout> get(Fields fields);

  /// Returns row-major memory for a tile of any extents.
  static SharedLayout rowMajor(llvm::ArrayRef<int64_t> shape, unsigned elementBytes);
  /// Returns the memory layout that a TMA load with this swizzle produces for a 2-D tile. The tile is divided into
  /// panels as wide as the swizzle (None: one panel), and a panel stores its rows consecutively. Fails when the row is
  /// no multiple of the panel, or when the extents do not fit.
  static llvm::Expected<SharedLayout> tma(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, Swizzle swizzle);
  /// Returns a scratch layout for storing a tile in layout `store` and loading it in layout `load`. It is the candidate
  /// swizzle with the fewest wavefronts and access instructions. It covers both layouts with their padding.
  static SharedLayout conflictFree(const Layout &store, const Layout &load, unsigned elementBytes);

  bool operator==(const SharedLayout &other) const;
  friend llvm::hash_code hash_value(const SharedLayout &layout);
  /// Prints, for example, `2B 0:128-512 1:2+16 ... rep 1x3 stride 0,4096`: for each dimension the bases of its bits in
  /// ascending order.
  std::string str() const;
  static llvm::Expected<SharedLayout> parse(llvm::StringRef text);

  unsigned rank() const { return fields.repeats.size(); }
  unsigned elementBytes() const { return fields.elementBytes; }
  const Fields &parameters() const { return fields; }
  llvm::SmallVector<int64_t, 4> atom() const;
  llvm::SmallVector<int64_t, 4> shape() const;
  /// Returns the bytes from the first element to the end of the last one.
  int64_t sizeBytes() const;
  /// Returns the required alignment of the base address. With it, offsets inside an atom can be XORed into addresses.
  int64_t alignment() const;
  int64_t offset(llvm::ArrayRef<int64_t> coordinates) const;

private:
  SharedLayout() = default;
  Fields fields;
};

/// Returns a layout of `count` consecutive slots along a new first dimension.
SharedLayout withSlots(const SharedLayout &slot, int64_t count);
/// Exchanges the two dimensions; the bytes stay the same.
SharedLayout transposed(const SharedLayout &layout);

/// How the threads of a layout access a tile in shared memory. The address is base + (XOR of the bases of the thread's
/// bits, XOR vector.xorOffset) + vector.addOffset. Each vector takes one shared-memory instruction.
struct SharedAccess {
  struct Vector {
    /// Registers in ascending order of address.
    llvm::SmallVector<unsigned, 8> registers;
    uint32_t xorOffset = 0;
    int64_t addOffset = 0;
  };
  unsigned vectorBytes = 0;
  /// Bytes that a set bit of lane, warp or block adds by XOR; 0 for free bits.
  llvm::SmallVector<uint32_t, 5> laneBases, warpBases, blockBases;
  llvm::SmallVector<Vector> vectors;
};

/// Plans the widest accesses to a tile with layout `layout`, of up to `maxVectorBytes` (at most 16). The tile is the
/// part of `memory` that begins at `at`, whose coordinates are multiples of the layout's shape. Fails when the memory's
/// shape does not fit the layout. It also fails when the memory's atom is smaller than the layout's in a dimension that
/// repeats.
llvm::Expected<SharedAccess> planAccess(const Layout &layout, const SharedLayout &memory, unsigned maxVectorBytes = 16,
                                        llvm::ArrayRef<int64_t> at = {});

/// Counts the wavefronts (passes of 128 bytes) of one warp for the whole tile. The model has 32 banks of 4 bytes.
/// Vectors of 16 bytes take four passes of 8 lanes, and vectors of 8 bytes take two passes of 16 lanes. In a pass,
/// different words of one bank are serialised, and equal words count once. The count enumerates the lanes of warp 0.
unsigned countWavefronts(const SharedAccess &access);
/// Returns the number of wavefronts without bank conflicts.
unsigned idealWavefronts(const SharedAccess &access);
/// Computes countWavefronts from matrix ranks: 2^(rank of words - rank of banks) for each pass.
unsigned wavefrontsByRank(const SharedAccess &access);
} // namespace kpkg::layout
