// Compiles ops to plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/Package.h"
#include "llvm/ADT/ArrayRef.h"

namespace kpkg::compiler {

class SourceManager;

/// Returns the bytecode of every op, and of its slice that computes shapes.
///
/// `gpuProgram` is the same sources as compiled for GPUs, possibly the same program. Ops that query the target have
/// separate plans there. `instances` are those of the package.
llvm::Expected<std::vector<PackedPlan>> encodeOps(const Program &program, const Program &gpuProgram,
                                                  const SourceManager &sources,
                                                  llvm::ArrayRef<PackedInstance> instances);

/// Returns all ops as plan IR text.
llvm::Expected<std::string> emitPlan(const Program &program, const SourceManager &sources);

} // namespace kpkg::compiler
