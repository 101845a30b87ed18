// Declares the types and ops of the plan dialect, the host side of an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/plan/ir/PlanDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/plan/ir/PlanTypes.h.inc"

#define GET_OP_CLASSES
#include "dialect/plan/ir/PlanOps.h.inc"

namespace kpkg::plan_ir {
/// Argument attributes of `plan.func`.
inline constexpr llvm::StringLiteral argNameAttr = "plan.name";
inline constexpr llvm::StringLiteral argMutAttr = "plan.mut";

/// Returns whether `name` is a dtype of `.k` ("float32", ...).
bool isDTypeName(llvm::StringRef name);
/// Returns the name of the dtype of an absent argument.
llvm::StringRef absentDTypeName();
/// Returns the bytes of one element of the dtype with this name.
int64_t dtypeSize(llvm::StringRef name);
/// Returns whether the dtype with this name is a floating-point type.
bool dtypeIsFloat(llvm::StringRef name);
} // namespace kpkg::plan_ir
