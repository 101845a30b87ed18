// Declares the elementary functions, each emitted for f32 or f64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/math/VectorMathCode.h"

namespace kpkg::lower {

mlir::Value emitExp(FloatCode &f, mlir::Value x);
mlir::Value emitExp2(FloatCode &f, mlir::Value x);
mlir::Value emitTanh(FloatCode &f, mlir::Value x);
mlir::Value emitErf(FloatCode &f, mlir::Value x);
/// Emits 1 - erf(x) in f32 without a division. The relative error is at most 2^-21 for x <= 1, and 2^-17 for larger x.
mlir::Value emitErfc(FloatCode &f, mlir::Value x);
mlir::Value emitLog(FloatCode &f, mlir::Value x);
mlir::Value emitLog2(FloatCode &f, mlir::Value x);
mlir::Value emitPow(FloatCode &f, mlir::Value x, mlir::Value y);
mlir::Value emitSin(FloatCode &f, mlir::Value x);
mlir::Value emitCos(FloatCode &f, mlir::Value x);

/// Emits 2^(high + low) for |low| much smaller than 1. Overflows to infinity and underflows to zero.
mlir::Value emitExp2OfSum(FloatCode &f, mlir::Value high, mlir::Value low);

} // namespace kpkg::lower
