// Passes over the kgpu level, in the order in which dialect/pipeline runs them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/Pass/Pass.h"

namespace kpkg::kgpu {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dialect/kgpu/Passes.h.inc"
} // namespace kpkg::kgpu
