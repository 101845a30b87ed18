// Converts between f32 or f64 and the 8- and 16-bit floats, with instructions that need no library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Builders.h"

namespace kpkg::lower {

/// Returns whether `element` is f16, bf16, f8E4M3FN or f8E5M2, which registers hold as integers.
bool isNarrowFloat(mlir::Type element);
/// Returns the f32 value of `bits`, an integer or a vector of integers that hold `element`. Exact.
mlir::Value extendToF32(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value bits, mlir::Type element);
/// Rounds `value` (f32 or f64, scalar or vector) once to `element`, to nearest even, and returns the bits as an
/// integer. NaN stays NaN. Overflow becomes infinity, or NaN in f8E4M3FN.
mlir::Value roundToNarrow(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type element);

} // namespace kpkg::lower
