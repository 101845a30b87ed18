// LLVM pass that masks the amounts of 64-bit shifts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/IR/PassManager.h"

namespace kpkg::compiler {

/// Masks variable amounts of 64-bit shifts, which are less than 64 wherever the result is used. LLVM 22 takes a select
/// that guards such a shift for the clamp of PTX, whose amounts have 32 bits. It drops the other bits of the amount
/// (llvm-project pull request 201165).
///
///   before: %r = shl i64 %x, %n
///   after:  %m = and i64 %n, 63
///           %r = shl i64 %x, %m
struct MaskWideShifts : llvm::PassInfoMixin<MaskWideShifts> {
  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &);
};

} // namespace kpkg::compiler
