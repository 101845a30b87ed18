// Expands elementary functions for GPUs: the special function unit where it is accurate enough, else polynomials.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/PatternMatch.h"

namespace kpkg::lower::nvvm {
/// Adds patterns that replace `math.{exp,exp2,log,log2,tanh,erf,sin,cos,powf,rsqrt,round}` on scalars. The results are
/// `arith`, `scf`, `math.{fma,floor,trunc,sqrt,absf,copysign,ctlz}` ops and intrinsics, which LLVM turns into
/// instructions. No function of libdevice remains. f16 and bf16 are computed in f32 and rounded once; f64 is computed
/// as on CPUs (VectorMath.h).
///
/// The largest error in f32, in units of the last place. "Measured" is from ExpandMathTest with a special function unit
/// that rounds correctly. "Worst" adds the unit's own error as PTX states it (ex2 and rsqrt 2 units, rcp 1). Denormals
/// are kept.
///
///   |          | exp | exp2 | tanh | rsqrt | erf | log, log2 | sin, cos | powf |
///   | measured | 1.0 | 0.51 | 1.4  | 0.51  | 1   | 0.9       | 0.8      | 0.51 |
///   | worst    | 3.0 | 2.51 | 1.7  | 2.51  | 1.1 | 0.9       | 0.8      | 0.51 |
void populateExpandMathPatterns(mlir::RewritePatternSet &patterns);

/// Applies these patterns to all ops inside `root`. Ops on tensors stay unchanged.
void expandMath(mlir::Operation *root);

/// Registers `--nvvm-expand-math`.
void registerExpandMathPass();
} // namespace kpkg::lower::nvvm
