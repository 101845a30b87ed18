// Builds the code of one `tile.dot`: packed panels and a register-blocked microkernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/Support/Error.h"
#include <array>
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

/// The location of a matrix operand, as run-time values. Element (i, j) is at `base` + i * stride[0] + j * stride[1]
/// elements if begin[d] <= index < end[d] in both dimensions. Other elements read as zero, and their memory is not
/// accessed, so `base` may point outside the allocation. Strides may be 0 or negative. For a stride that is the
/// constant 1, only the fast code is emitted. Other strides are tested at run time.
///
/// With `lines`, the dimension that is not the depth has a table of offsets instead of a stride. Line i lies lines[i]
/// elements from `base`, and reads as zero where the offset is kNoLine.
struct DotOperand {
  mlir::Value base;                  ///< !llvm.ptr to element (0, 0).
  std::array<mlir::Value, 2> stride; ///< index, in elements.
  std::array<mlir::Value, 2> begin;  ///< index; null means 0.
  std::array<mlir::Value, 2> end; ///< index; null means the extent in DotShape; may be negative or beyond that extent.
  mlir::Type elementType;         ///< f16, bf16, f32 or f64.
  mlir::Value lines = {}; ///< !llvm.ptr to i64 offsets, or null. One entry before the first and kLinesBehind after the
                          ///< last are readable; the latter are kNoLine.
  mlir::Value nothing = {}; ///< With lines: !llvm.ptr to 64 bytes of zeros.
};

/// The shape of acc[m, n] += a[m, k] * b[k, n].
struct DotShape {
  int64_t m, n, k;
  mlir::Type accType; ///< f32 or f64; products of f16, bf16 and f32 are computed and added in f32 by FMA, with one
                      ///< rounding each.
  bool pairs =
      false; ///< Both operands are bf16 and the machine multiplies pairs along the depth. A step is then a pair.
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
  /// Returns the bytes that buildDot's `scratch` must have.
  int64_t scratchBytes() const;
};
DotPlan planDot(const DotShape &shape, const VectorUnit &unit);

/// Emits `acc += a * b` at the builder's insertion point, with ops of arith, scf, vector, math and llvm.
///
/// `acc` is an !llvm.ptr to a row-major m x n matrix of accType with rows `accStride` elements apart, at least 4-byte
/// aligned. `scratch` is an !llvm.ptr to scratchBytes() bytes with 64-byte alignment that nothing else uses meanwhile.
/// The operands must not overlap `acc` or `scratch`.
///
/// Products of a filled-in zero and an infinity may be skipped, because depth steps end where one of the operands ends.
/// Rows that lie wholly outside `a` and columns that lie wholly outside `b` may be left unchanged.
void buildDot(mlir::OpBuilder &builder, mlir::Location loc, const DotPlan &plan, const DotOperand &a,
              const DotOperand &b, mlir::Value acc, int64_t accStride, mlir::Value scratch);

} // namespace kpkg::lower::cpu
