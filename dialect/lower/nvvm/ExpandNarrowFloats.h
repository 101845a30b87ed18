// 8-bit floats as integers: LLVM has no arithmetic on them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"

namespace kpkg::lower::nvvm {
/// Replaces conversions from and to f8E4M3FN and f8E5M2 scalars inside `root` by integer arithmetic, and computes other
/// scalar ops on them in f32, rounding each result once.
void expandNarrowFloats(mlir::Operation *root);

/// Registers `--nvvm-expand-narrow-floats`.
void registerExpandNarrowFloatsPass();
} // namespace kpkg::lower::nvvm
