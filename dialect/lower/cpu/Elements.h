// Declares the types of elements in registers and in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"

namespace kpkg::lower::cpu {

/// Returns the type of `element` in registers: an integer of the same width for f16, bf16 and f8, else the type itself.
mlir::Type registerType(mlir::Type element);
/// Returns the type of `element` in memory: as in registers, but i8 for i1 and i64 for index.
mlir::Type memoryType(mlir::Type element);
int64_t memoryBytes(mlir::Type element);
/// Returns whether `op` is an arith or math op that computes each element from the operands' elements.
bool isElementwise(mlir::Operation *op);

} // namespace kpkg::lower::cpu
