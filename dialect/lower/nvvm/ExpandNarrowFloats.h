// Expands 8-bit floats to integer code, because LLVM has no arithmetic on them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"

namespace kpkg::lower::nvvm {
/// Replaces conversions from and to scalars of the 8-bit floats inside `root` by integer arithmetic. Other scalar ops
/// on these types are computed in f32, and each result is rounded once.
void expandNarrowFloats(mlir::Operation *root);

/// Registers `--nvvm-expand-narrow-floats`.
void registerExpandNarrowFloatsPass();
} // namespace kpkg::lower::nvvm
