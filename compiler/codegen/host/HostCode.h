// Generates machine code for CPUs: functions in the LLVM dialect to objects, and objects to a loadable shared object.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/CpuTarget.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace kpkg::compiler {

/// Properties of a kernel's entry that the runtime needs.
struct HostKernel {
  std::string symbol;
  int64_t scratchBytes = 0;
  int64_t frames = 0; ///< coroutines of a task, one for each thread that waits for others
  bool isPersistent = false;
  std::vector<std::string> asserts;
  std::vector<std::string> prints;
};

/// A relocatable ELF object and its kernels.
struct HostObject {
  std::string bytes;
  std::vector<HostKernel> kernels;
};

/// Compiles a module from lower::cpu::lowerToLLVM, at optimisation level 0 to 3. Threads may call it concurrently, each
/// with a module of its own context. Objects are cached by content in KPKG_CACHE_DIR.
llvm::Expected<HostObject> compileToObject(mlir::ModuleOp module, const lower::cpu::CpuTarget &target,
                                           unsigned optLevel);

/// Returns the optimised LLVM IR of the module, as text.
llvm::Expected<std::string> compileToLlvmText(mlir::ModuleOp module, const lower::cpu::CpuTarget &target,
                                              unsigned optLevel);

/// Links the objects into one position-independent shared object that exports its kernels' entries.
///
/// It needs no other library, no relocation and no initialiser at load time. Errors name missing symbols. Calls are
/// serialised. Sections for debuggers and local symbols remain only if `keepsLineTables`.
llvm::Expected<std::string> linkObjects(llvm::ArrayRef<HostObject> objects, const lower::cpu::CpuTarget &target,
                                        bool keepsLineTables = false);

} // namespace kpkg::compiler
