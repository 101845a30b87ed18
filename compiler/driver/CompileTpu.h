// Makes the tile programs of kernel instances, for the target tpu.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/driver/CompileInstances.h"
#include "compiler/driver/DropAlternatives.h"
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::compiler {

/// Adds the tile program of the one kernel of `tile` to `result`, or the reason why TPUs have none.
void compileForTpus(mlir::ModuleOp tile, const Program &program, InstanceRef instance, JobResult &result);

/// Adds the tile programs of `results`, and a note on each kernel of which TPUs lack instances: its place, their
/// number, and the constructs. Returns KernelRefused if no instance has a tile program, with the reason of the first
/// one.
llvm::Error addTpuPrograms(const Program &program, const SourceManager &sources, llvm::ArrayRef<InstanceRef> refs,
                           llvm::MutableArrayRef<JobResult> results, CompiledInstances &compiled);

} // namespace kpkg::compiler
