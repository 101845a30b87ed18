// Declares the block sizes of a `tile.dot`, and the properties of machines that they depend on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Types.h"
#include <cstdint>
#include <limits>

namespace kpkg::lower::cpu {

/// The properties of the machine that the microkernel depends on.
struct VectorUnit {
  int64_t vectorBytes;          ///< 32 for AVX2, 64 for AVX-512, 16 for Neon.
  int64_t registerCount;        ///< 16 for AVX2, else 32.
  bool broadcastFromMemory;     ///< x86 multiplies by a scalar broadcast from memory; Neon multiplies by a lane of a
                                ///< register.
  bool multipliesPairs = false; ///< AVX512-BF16: one instruction adds the products of two bf16 pairs to an f32.
  bool multipliesTiles = false; ///< AMX-BF16: one instruction adds the product of two matrices of bf16 to one of f32.
};

/// The table offset of a line that reads as zero.
inline constexpr int64_t kNoLine = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kLinesBehind = 64;

/// Rows of a tile of AMX, bytes of a row and of a tile, and bytes of the operand of LDTILECFG.
inline constexpr int64_t kTileRows = 16, kTileRowBytes = 64, kTileBytes = kTileRows * kTileRowBytes,
                         kTileConfigurationBytes = 64;

/// The shape of acc[m, n] += a[m, k] * b[k, n].
struct DotShape {
  int64_t m, n, k;
  mlir::Type accType; ///< f32 or f64; products of f16, bf16 and f32 are computed and added in f32 by FMA, with one
                      ///< rounding each.
  bool pairs =
      false; ///< Both operands are bf16 and the machine multiplies pairs along the depth. A step is then a pair.
};

/// Byte offsets of the parts of a dot's scratch memory, and its size.
struct DotScratch {
  int64_t rows, columns, edge;
  int64_t configuration; ///< of the tiles of AMX; a single tile lies between `edge` and it
  int64_t end;
};

/// Block sizes of a dot on one machine. They are decided before code is built, so that scratch memory can be reserved.
struct DotPlan {
  DotShape shape;
  VectorUnit unit;
  int64_t lanes;                                        ///< Elements of accType in a vector register.
  int64_t mr, nr;                                       ///< The register tile.
  int64_t kUnroll;                                      ///< The k steps per iteration of the microkernel's loop.
  int64_t mc, kc, nc;                                   ///< Rows, depth steps and columns of the packed blocks.
  int64_t width() const { return shape.pairs ? 2 : 1; } ///< Elements of the depth in a step.
  /// Returns whether panels are multiplied by the tiles of AMX.
  bool usesTiles() const { return shape.pairs && unit.multipliesTiles; }
  DotScratch scratch() const;
  /// Returns the bytes that buildDot's `scratch` must have.
  int64_t scratchBytes() const { return scratch().end; }
};
DotPlan planDot(const DotShape &shape, const VectorUnit &unit);

} // namespace kpkg::lower::cpu
