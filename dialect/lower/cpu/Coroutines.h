// Turns functions that wait into coroutines, and adds the function that runs the threads of a cluster.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace kpkg::lower::cpu {

/// Adds the definition of `runThreadsName` to a module with kernels whose threads wait for each other.
void addThreadDriver(mlir::ModuleOp module);

/// Replaces each call of `suspendName` by a suspension, in functions with the attribute `coroutine`. Entry: branches
/// are those of blocks. Exit: LLVM's coroutine passes can split the functions.
void splitAtSuspensions(mlir::ModuleOp module);

} // namespace kpkg::lower::cpu
