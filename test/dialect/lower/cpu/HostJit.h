// Compiles a module of functions over arith, math, scf, vector and llvm for the machine that runs the test.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include <memory>
#include <string>

namespace llvm::orc {
class LLJIT;
}

namespace kpkg::test {

/// Makes a context with the dialects that code builders use, and the interfaces to lower them.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Lowers `module` to the LLVM dialect in place. Aborts with a message when that fails.
void lowerToLLVMDialect(mlir::ModuleOp module);

/// Returns assembly text for `triple` and `cpu`. The module is in the LLVM dialect.
std::string assemblyFor(mlir::ModuleOp module, llvm::StringRef triple, llvm::StringRef cpu,
                        llvm::StringRef features = "");

/// Returns an object file for `triple` and `cpu`. The module is in the LLVM dialect.
std::string objectFor(mlir::ModuleOp module, llvm::StringRef triple, llvm::StringRef cpu,
                      llvm::StringRef features = "");

/// The code of an LLVM dialect module, loaded into this process.
class HostJit {
public:
  /// Compiles for `cpu`, or for the machine that runs the test if `cpu` is empty.
  explicit HostJit(mlir::ModuleOp module, llvm::StringRef cpu = "");
  ~HostJit();
  template <typename Function> Function *find(llvm::StringRef name) {
    return reinterpret_cast<Function *>(address(name));
  }

private:
  void *address(llvm::StringRef name);
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace kpkg::test
