// Elementary functions for NVIDIA GPUs: the special function unit where it is accurate enough, polynomials elsewhere.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/PatternMatch.h"

namespace kpkg::lower::nvvm {
/// Patterns that replace `math.{exp,exp2,log,log2,tanh,erf,sin,cos,powf,rsqrt,round}` on scalars by `arith`, `scf`,
/// `math.{fma,floor,trunc,sqrt,absf,copysign,ctlz}` and intrinsics, which LLVM turns into instructions: no function of
/// libdevice is left. f16 and bf16 are computed in f32 and rounded once; f64 as on CPUs (VectorMath.h).
///
/// Largest error in f32, in units of the last place: measured by ExpandMathTest with a special function unit that
/// rounds correctly, and with the unit's own error as PTX states it (ex2 and rsqrt 2 units, rcp 1) at its worst.
/// Denormals are kept.
///
///   |          | exp | exp2 | tanh | rsqrt | erf | log, log2 | sin, cos | powf |
///   | measured | 1.0 | 0.51 | 1.4  | 0.51  | 1   | 0.9       | 0.8      | 0.51 |
///   | worst    | 3.0 | 2.51 | 1.7  | 2.51  | 1.1 | 0.9       | 0.8      | 0.51 |
void populateExpandMathPatterns(mlir::RewritePatternSet &patterns);

/// Applies these patterns to everything inside `root`; ops on tensors are left alone.
void expandMath(mlir::Operation *root);

/// Registers `--nvvm-expand-math`.
void registerExpandMathPass();
} // namespace kpkg::lower::nvvm
