// Ops to plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/Package.h"
#include "llvm/ADT/ArrayRef.h"

namespace kpkg::compiler {

class SourceManager;

/// Bytecode of every op, and of the slice of it that decides shapes. `gpuProgram`, where it is another one, is what
/// GPUs see of the same sources: ops that ask for the target have plans of their own there. `instances` are those of
/// the package.
llvm::Expected<std::vector<PackedPlan>> encodeOps(const Program &program, const Program &gpuProgram,
                                                  const SourceManager &sources,
                                                  llvm::ArrayRef<PackedInstance> instances);

/// All ops as plan IR, as text.
llvm::Expected<std::string> emitPlan(const Program &program, const SourceManager &sources);

} // namespace kpkg::compiler
