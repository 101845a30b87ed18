// Elementary functions as vector code: `math` ops become FMA polynomials, with no calls, tables or branches on hot
// paths.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/LogicalResult.h"

namespace kpkg::lower {

/// Patterns that replace `math.{exp,exp2,log,log2,tanh,erf,sin,cos,powf,rsqrt,round}` on scalars and fixed vectors of
/// any length by `arith`, `vector`, `scf` and `math.{fma,floor,trunc,sqrt,absf,copysign,ctlz}` ops, which every
/// supported CPU has as instructions. f16 and bf16 are computed in f32 and rounded once at the end.
///
/// Largest error in units of the last place, over all arguments, denormals included (measured by VectorMathTest):
///
///   |      | exp | exp2 | log | log2 | tanh | erf | sin, cos | powf | rsqrt |
///   | f32  | 1.1 | 1.1  | 1   | 1    | 3    | 1.1 | 1        | 0.51 | 1.5   |
///   | f64  | 1.1 | 1.1  | 1   | 1    | 3    | 1.1 | 1        | 1.5  | 1.5   |
///
/// NaN gives NaN; infinities, zeros of either sign and overflow give what C's Annex F says.
void populateVectorMathPatterns(mlir::RewritePatternSet &patterns);

/// Applies these patterns to everything inside `root`. Ops on other types (tensors) are left alone.
llvm::LogicalResult expandVectorMath(mlir::Operation *root);

/// Registers `--lower-expand-math`, which runs expandVectorMath on the module.
void registerExpandVectorMathPass();

} // namespace kpkg::lower
