// Compiles kernel instances to machine code, in parallel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/driver/CompileOne.h"
#include "compiler/driver/Targets.h"
#include "compiler/pack/Package.h"

namespace kpkg::compiler {

struct CompiledInstances {
  std::vector<PackedInstance> instances;
  std::vector<PackedObject> objects;
  std::string tileBytecode;
  /// Notes for the user: omitted variants, a missing tool.
  std::vector<std::string> notes;
};

/// Compiles every checked instance of `program`, or of one kernel, for every target. The result does not depend on the
/// number of threads.
llvm::Expected<CompiledInstances> compileInstances(const Program &program, const SourceManager &sources,
                                                   const BuildTargets &targets, const CompileOptions &options,
                                                   const Progress &progress);

/// Compiles the instance that compileInstances() records under `number` again, on this thread, and drops its code.
/// Nothing catches its failures.
void compileAlone(const Program &program, const SourceManager &sources, const BuildTargets &targets,
                  const CompileOptions &options, size_t number, const BeforeStage &beforeStage);

/// Returns the number under which instances for these targets, all CPUs or all GPUs, are recorded.
inline int kindOf(const BuildTargets &targets) { return targets.hasGpu() ? 1 : 0; }

/// Returns all instances before target-specific lowering: tile IR as text.
llvm::Expected<std::string> emitTile(const Program &program, const SourceManager &sources,
                                     const CompileOptions &options);
/// Returns all instances as optimised LLVM IR for one target.
llvm::Expected<std::string> emitLlvm(const Program &program, const SourceManager &sources,
                                     const lower::cpu::CpuTarget &target, const CompileOptions &options);

/// Returns all instances for one GPU chip at a stage from laid-out kernels to machine code.
llvm::Expected<std::string> emitGpu(const Program &program, const SourceManager &sources, llvm::StringRef chip,
                                    const CompileOptions &options, Stage stage);

} // namespace kpkg::compiler
