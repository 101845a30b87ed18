// Builds the pass pipeline that takes a kernel from tile level to a laid-out kernel of a chip.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/Pass/PassManager.h"

namespace kpkg {

/// Adds the passes for `chip` ("sm_90a"). A kernel without a launch gets number `candidate` of kgpu::candidates. Their
/// output is the input of lower::nvvm::lowerToNvvm.
void buildGpuPipeline(mlir::OpPassManager &modulePasses, llvm::StringRef chip, unsigned candidate = 0);

/// Registers `--gpu-pipeline="chip=sm_90a candidate=0"`.
void registerGpuPipeline();

} // namespace kpkg
