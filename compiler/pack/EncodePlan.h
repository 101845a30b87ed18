// Encodes plan IR as plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/plan/ir/Plan.h"
#include <set>
#include <string>

namespace kpkg::compiler {

/// Names of kernels, each with the number of an argument.
using KernelArguments = std::set<std::pair<std::string, unsigned>>;

/// Returns the bytecode (runtime/plan/Decoded.h) of `function` and its callees.
///
/// A scalar argument that only flows into launch arguments becomes a pass-through argument: calls that differ only in
/// its value share one resolution. `decisive` arguments of launches are excluded, because the choice of an instance
/// depends on their values.
///
/// Recursion, and ops without a bytecode instruction, fail with a diagnostic at the op.
mlir::FailureOr<std::string> encodePlan(plan_ir::FuncOp function, const KernelArguments &decisive = {});

} // namespace kpkg::compiler
