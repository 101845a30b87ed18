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

/// What the microkernel needs to know of the machine.
struct VectorUnit {
  int64_t vectorBytes;      ///< 32 for AVX2, 64 for AVX-512, 16 for Neon
  int64_t registerCount;    ///< 16 for AVX2, else 32
  bool broadcastFromMemory; ///< x86 multiplies by a scalar broadcast out of memory; Neon multiplies by a lane of a
                            ///< register
  bool multipliesPairs =
      false; ///< x86 with AVX512-BF16: an instruction adds the products of two pairs of bf16 to an f32
};

/// The offset of a line that reads as zero.
inline constexpr int64_t kNoLine = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kLinesBehind = 64;

/// Where the elements of a matrix operand lie, as run-time values. Element (i, j) is at `base` + i * stride[0] + j *
/// stride[1] elements when begin[d] <= index < end[d] in both dimensions; elsewhere it reads as zero and memory is not
/// touched. `base` may therefore point outside of the allocation. Strides may be 0 or negative. A stride that is the
/// constant 1 gives the fast code alone, any other value is tested at run time.
///
/// With `lines`, the dimension that is not the depth has a table in place of a stride: line i lies lines[i] elements
/// from `base`, and reads as zero where that is kNoLine.
struct DotOperand {
  mlir::Value base;                  ///< !llvm.ptr to element (0, 0)
  std::array<mlir::Value, 2> stride; ///< index, in elements
  std::array<mlir::Value, 2> begin;  ///< index; null means 0
  std::array<mlir::Value, 2> end; ///< index; null means the extent in DotShape; may be negative or beyond that extent
  mlir::Type elementType;         ///< f16, bf16, f32 or f64
  mlir::Value lines = {}; ///< !llvm.ptr to i64 offsets, or null; one entry before the first and kLinesBehind after the
                          ///< last can be read, these are kNoLine
  mlir::Value nothing = {}; ///< with lines: !llvm.ptr to 64 bytes of zeros
};

/// acc[m, n] += a[m, k] * b[k, n]
struct DotShape {
  int64_t m, n, k;
  mlir::Type
      accType; ///< f32 or f64; products of f16, bf16 and f32 are formed and added in f32, one rounding each (FMA)
  bool pairs =
      false; ///< both operands are bf16 and the machine multiplies pairs of their depth: these are the steps then
};

/// Block sizes of a dot on one machine; decided once, before code is built, so that scratch memory can be reserved.
struct DotPlan {
  DotShape shape;
  VectorUnit unit;
  int64_t lanes;                                        ///< elements of accType in a vector register
  int64_t mr, nr;                                       ///< the register tile
  int64_t kUnroll;                                      ///< k steps per iteration of the microkernel's loop
  int64_t mc, kc, nc;                                   ///< rows, steps of the depth and columns of the packed blocks
  int64_t width() const { return shape.pairs ? 2 : 1; } ///< elements of the depth in a step
  /// Bytes that buildDot's `scratch` must have.
  int64_t scratchBytes() const;
};
DotPlan planDot(const DotShape &shape, const VectorUnit &unit);

/// Emits `acc += a * b` at the builder's insertion point. `acc` is an !llvm.ptr to a row-major m x n matrix of accType
/// whose rows are `accStride` elements apart (at least 4-byte aligned), `scratch` an !llvm.ptr with 64-byte alignment
/// to scratchBytes() bytes that nothing else uses meanwhile. The operands may lie anywhere but in `acc` or `scratch`.
/// A product of a filled-in zero and an infinity need not be formed: steps of the depth end with one operand, and rows
/// that lie wholly outside of `a` and columns that lie wholly outside of `b` may be left as they were. Uses arith, scf,
/// vector, math and llvm ops.
void buildDot(mlir::OpBuilder &builder, mlir::Location loc, const DotPlan &plan, const DotOperand &a,
              const DotOperand &b, mlir::Value acc, int64_t accStride, mlir::Value scratch);

} // namespace kpkg::lower::cpu
