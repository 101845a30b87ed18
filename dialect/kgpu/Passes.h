// Declares the passes over kgpu IR; dialect/pipeline/GpuPipeline.cpp says in which order they run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/Pass/Pass.h"

namespace kpkg::kgpu {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dialect/kgpu/Passes.h.inc"
} // namespace kpkg::kgpu
