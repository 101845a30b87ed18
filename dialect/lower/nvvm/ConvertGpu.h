// Converts the GPU dialect to the NVVM dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace kpkg::lower::nvvm {

/// Converts the ops of the GPU dialect in `module`, except `gpu.module`. Kernels become `llvm.func`, and values of type
/// index become casts of the results of NVVM ops.
mlir::LogicalResult convertGpu(mlir::ModuleOp module);

} // namespace kpkg::lower::nvvm
