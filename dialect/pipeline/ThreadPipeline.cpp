// The pipeline of kernels at thread level, whose bodies are the code of one thread already.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/Passes.h"
#include "dialect/pipeline/Phases.h"

namespace kpkg {

void addThreadPasses(mlir::OpPassManager &passes) {
  passes.addPass(kgpu::createKgpuPlaceScratch()); // makes buffers of `shared`
  passes.addPass(kgpu::createKgpuAllocSmem()); // the author's barriers order their accesses, so that none are inserted
}

} // namespace kpkg
