// Conversions between f32 or f64 and the 8- and 16-bit floats, as instructions that need no library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Builders.h"

namespace kpkg::lower {

/// True for f16, bf16, f8E4M3FN and f8E5M2, which registers hold as integers.
bool isNarrowFloat(mlir::Type element);
/// The f32 value of `bits`, an integer or a vector of them that holds `element`. Exact.
mlir::Value extendToF32(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value bits, mlir::Type element);
/// `value` (f32 or f64, scalar or vector) rounded once to `element`, to nearest even, as an integer. NaN stays NaN;
/// overflow gives infinity, or NaN in f8E4M3FN.
mlir::Value roundToNarrow(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type element);

} // namespace kpkg::lower
