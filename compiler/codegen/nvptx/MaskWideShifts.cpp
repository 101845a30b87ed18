// LLVM pass that masks the amounts of 64-bit shifts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/MaskWideShifts.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace kpkg::compiler {

PreservedAnalyses MaskWideShifts::run(Module &module, ModuleAnalysisManager &) {
  bool changed = false;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      if (!instruction.isShift() || !instruction.getType()->isIntegerTy(64) || isa<Constant>(instruction.getOperand(1)))
        continue;
      IRBuilder<> builder(&instruction);
      instruction.setOperand(1, builder.CreateAnd(instruction.getOperand(1), 63));
      changed = true;
    }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace kpkg::compiler
