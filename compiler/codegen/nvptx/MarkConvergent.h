// LLVM pass that marks inline assembly with thread synchronisation as convergent.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/IR/PassManager.h"

namespace kpkg::compiler {

/// Marks calls of inline assembly that require a warp's threads to run together. MLIR 22's `llvm.inline_asm` cannot
/// express this. Without the mark, LLVM may move such a call under a condition or copy it into both branches.
///
///   before: call void asm sideeffect "barrier.cluster.arrive.aligned;", ""()
///   after:  call void asm sideeffect "barrier.cluster.arrive.aligned;", ""() #convergent
struct MarkConvergent : llvm::PassInfoMixin<MarkConvergent> {
  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &);
};

} // namespace kpkg::compiler
