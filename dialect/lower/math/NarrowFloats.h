// Converts between f32 or f64 and the 8- and 16-bit floats, with instructions that need no library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Builders.h"

namespace kpkg::lower {

/// Returns whether `element` is a float that registers hold as an integer: f16, bf16 or an 8-bit float.
bool isNarrowFloat(mlir::Type element);
/// Returns whether `element` is one of the 8-bit floats that both conversions know.
bool isFloat8(mlir::Type element);
/// Returns the f32 value of `bits`, an integer or a vector of integers that hold `element`. Exact.
mlir::Value extendToF32(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value bits, mlir::Type element);
/// Rounds `value` (f32 or f64, scalar or vector) once to `element`, to nearest even, and returns the bits as an
/// integer. NaN stays NaN. Overflow becomes infinity, or NaN in f8E4M3FN.
mlir::Value roundToNarrow(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type element);

} // namespace kpkg::lower
