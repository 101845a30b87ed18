// Compiles random kernels for this machine's CPU and runs them on the memory of their call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "RandomCall.h"
#include "compiler/codegen/host/HostCode.h"
#include "runtime/device/cpu/HostObject.h"

namespace kpkg::sim::test {
/// The kernels of a module as machine code, in all variants of their argument facts.
class CompiledModule {
public:
  /// Compiles a copy of the module's kernels. The error holds the compiler's diagnostics.
  static llvm::Expected<CompiledModule> compile(llvm::ArrayRef<RandomKernel> kernels, const std::string &isa,
                                                unsigned optLevel);

  /// Runs a variant on `memory`, in place, in two parts. The part with the later blocks runs first.
  llvm::Error run(const RandomKernel &kernel, const std::string &variant, Memory &memory) const;

  /// For each kernel, the symbols of the variants that its call may use.
  std::vector<std::vector<std::string>> variants;

private:
  CompiledModule(cpu::HostObject object) : object(std::move(object)) {}

  cpu::HostObject object;
  std::vector<compiler::HostKernel> kernels;
};
} // namespace kpkg::sim::test
