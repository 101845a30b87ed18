// Machine code for CPUs: functions in the LLVM dialect to objects, objects to what the runtime loads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/CpuTarget.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace kpkg::compiler {

/// What the runtime must know of a kernel's entry.
struct HostKernel {
  std::string symbol;
  int64_t scratchBytes = 0;
  bool isPersistent = false;
  std::vector<std::string> asserts;
  std::vector<std::string> prints;
};

/// A relocatable ELF object and its kernels.
struct HostObject {
  std::string bytes;
  std::vector<HostKernel> kernels;
};

/// Compiles a module that lower::cpu::lowerToLLVM made, at optimisation level 0 to 3. Threads may call it at the same
/// time, each with a module of its own context.
llvm::Expected<HostObject> compileToObject(mlir::ModuleOp module, const lower::cpu::CpuTarget &target,
                                           unsigned optLevel);

/// The optimised LLVM IR of the same, as text.
llvm::Expected<std::string> compileToLlvmText(mlir::ModuleOp module, const lower::cpu::CpuTarget &target,
                                              unsigned optLevel);

/// Links the objects into one shared object that is position independent, needs no other library, no relocation and no
/// initialiser at load time, and exports its kernels' entries. An error names the symbols that are missing. Calls are
/// serialised.
llvm::Expected<std::string> linkObjects(llvm::ArrayRef<HostObject> objects, const lower::cpu::CpuTarget &target);

} // namespace kpkg::compiler
