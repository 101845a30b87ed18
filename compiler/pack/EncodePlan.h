// Plan IR to plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/plan/ir/Plan.h"
#include <set>
#include <string>

namespace kpkg::compiler {

/// Names of kernels, each with the number of one of its arguments.
using KernelArguments = std::set<std::pair<std::string, unsigned>>;

/// The bytecode (runtime/plan/Decoded.h) of `function` and of all that it calls. A scalar argument that only flows into
/// launch arguments becomes a pass-through argument: calls that differ only in its value share one resolution. Not so
/// where a launch gives it to one of the `decisive` arguments, on whose values the choice of an instance depends. Fails
/// with a diagnostic at the op for recursion and for ops that bytecode has no instruction for.
mlir::FailureOr<std::string> encodePlan(plan_ir::FuncOp function, const KernelArguments &decisive = {});

} // namespace kpkg::compiler
