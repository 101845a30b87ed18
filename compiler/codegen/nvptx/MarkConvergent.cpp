// LLVM pass that marks inline assembly with thread synchronisation as convergent.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/MarkConvergent.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace kpkg::compiler {

static bool synchronises(StringRef text) {
  static constexpr StringLiteral parts[] = {
      "wgmma.",   "mbarrier.", "bar.",   "barrier.", "cp.async", "elect.",     "shfl.",          "vote.",
      "ldmatrix", "match.",    "redux.", "stmatrix", "mma.",     "setmaxnreg", "griddepcontrol", "activemask"};
  return any_of(parts, [&](StringRef part) { return text.contains(part); });
}

PreservedAnalyses MarkConvergent::run(Module &module, ModuleAnalysisManager &) {
  bool changed = false;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      auto *call = dyn_cast<CallInst>(&instruction);
      auto *text = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
      if (!text || call->isConvergent() || !synchronises(text->getAsmString()))
        continue;
      call->setConvergent();
      changed = true;
    }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace kpkg::compiler
