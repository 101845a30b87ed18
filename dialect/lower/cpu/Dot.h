// Builds the code of one `tile.dot`: packed panels and a register-blocked microkernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/DotPlan.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include <array>

namespace kpkg::lower::cpu {

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
