// From the GPU dialect to the NVVM dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace kpkg::lower::nvvm {

/// Replaces the ops of the GPU dialect in `module` but its `gpu.module`s: kernels become `llvm.func`, and values of
/// type index casts of what the NVVM dialect's ops give.
mlir::LogicalResult convertGpu(mlir::ModuleOp module);

} // namespace kpkg::lower::nvvm
