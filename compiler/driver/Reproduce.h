// Writes the inputs of stages as reproducers, runs them again, and reduces them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/reproducer/Reproducer.h"
#include "compiler/driver/CompileGpu.h"
#include "dialect/lower/cpu/CpuTarget.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kpkg::compiler {

/// Returns a reproducer for the first passes of an instance, which know no target.
Reproducer reproducerForSimplify(mlir::ModuleOp module);
/// Returns a reproducer for the lowering of `module`, which has the variants of an instance, and for LLVM.
Reproducer reproducerForCpu(mlir::ModuleOp module, const lower::cpu::CpuTarget &target, const CompileOptions &options);
/// Returns a reproducer for everything that compileForChip() does with `kernel`, or compileToPackedPtx() without ptxas.
Reproducer reproducerForGpu(tile::KernelOp kernel, llvm::StringRef chip, CodeOptions options, bool hasPtxas,
                            Others others);

/// Runs the stage again. Returns an error for input that it refuses, or that does not parse. Nothing is read from the
/// cache of machine code.
llvm::Error runAgain(const Reproducer &reproducer);

/// Returns a smaller reproducer for which `fails` holds as well, by erasing kernels and ops, and replacing results by
/// operands of the same type. Ends once `isLate` holds. PTX is returned as it is.
Reproducer reduced(const Reproducer &reproducer, llvm::function_ref<bool(const Reproducer &)> fails,
                   llvm::function_ref<bool()> isLate);

} // namespace kpkg::compiler
