// Declares the passes over the plan dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/plan/ir/Plan.h"
#include "mlir/Pass/Pass.h"

namespace kpkg::plan_ir {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dialect/plan/transforms/Passes.h.inc"
} // namespace kpkg::plan_ir
