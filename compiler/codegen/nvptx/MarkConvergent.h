// LLVM pass: inline assembly that synchronises threads is convergent.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/IR/PassManager.h"

namespace kpkg::compiler {

/// Marks calls of inline assembly that only make sense when a warp's threads run it together. `llvm.inline_asm` of MLIR
/// 22 cannot say so, and without the mark LLVM may move such a call under a condition or copy it into both arms.
///
///   before: call void asm sideeffect "barrier.cluster.arrive.aligned;", ""()
///   after:  call void asm sideeffect "barrier.cluster.arrive.aligned;", ""() #convergent
struct MarkConvergent : llvm::PassInfoMixin<MarkConvergent> {
  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &);
};

} // namespace kpkg::compiler
