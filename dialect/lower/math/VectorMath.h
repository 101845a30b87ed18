// Expands elementary functions to vector code: FMA polynomials without calls or tables, and without branches on hot
// paths.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/LogicalResult.h"

namespace kpkg::lower {

/// Adds patterns that replace `math.{exp,exp2,log,log2,tanh,erf,sin,cos,powf,rsqrt,round}` on scalars and fixed vectors
/// of any length. The results are `arith`, `vector`, `scf` and `math.{fma,floor,trunc,sqrt,absf,copysign,ctlz}` ops.
/// Every supported CPU has instructions for them. f16 and bf16 are computed in f32 and rounded once at the end.
///
/// The largest error in units of the last place, over all arguments including denormals (measured by VectorMathTest):
///
///   |      | exp | exp2 | log | log2 | tanh | erf | sin, cos | powf | rsqrt |
///   | f32  | 1.1 | 1.1  | 1   | 1    | 3    | 1.1 | 1        | 0.51 | 1.5   |
///   | f64  | 1.1 | 1.1  | 1   | 1    | 3    | 1.1 | 1        | 1.5  | 1.5   |
///
/// NaN gives NaN. Infinities, zeros of either sign and overflow follow Annex F of the C standard.
void populateVectorMathPatterns(mlir::RewritePatternSet &patterns);

/// Applies these patterns to all ops inside `root`. Ops on other types (tensors) stay unchanged.
llvm::LogicalResult expandVectorMath(mlir::Operation *root);

/// Registers `--lower-expand-math`, which runs expandVectorMath on the module.
void registerExpandVectorMathPass();

} // namespace kpkg::lower
