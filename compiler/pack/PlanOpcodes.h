// Maps ops to instructions of plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"
#include "runtime/plan/Decoded.h"
#include <optional>

namespace kpkg::compiler {

/// The instruction of an op whose operands and results are the instruction's, in order. Only comparisons have
/// immediates. nullopt for other ops.
struct DirectInstruction {
  plan::Opcode opcode;
  /// Comparison mask, or -1.
  int64_t mask = -1;
};
std::optional<DirectInstruction> directInstruction(mlir::Operation *op);

/// Returns the register type of a value of this type; 0 if no register holds it.
plan::RegisterType registerTypeOf(mlir::Type type);

} // namespace kpkg::compiler
