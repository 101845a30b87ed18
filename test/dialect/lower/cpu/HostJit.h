// Compiles a module of functions over arith, math, scf, vector and llvm for the machine that the test runs on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include <memory>
#include <string>

namespace llvm::orc {
class LLJIT;
}

namespace kpkg::test {

/// A context with the dialects that code builders use, and what is needed to lower them.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Lowers `module` to the LLVM dialect in place; aborts with a message when that fails.
void lowerToLLVMDialect(mlir::ModuleOp module);

/// Machine code for `triple` and `cpu` as assembly text. The module is in the LLVM dialect.
std::string assemblyFor(mlir::ModuleOp module, llvm::StringRef triple, llvm::StringRef cpu,
                        llvm::StringRef features = "");

/// An object file for `triple` and `cpu`. The module is in the LLVM dialect.
std::string objectFor(mlir::ModuleOp module, llvm::StringRef triple, llvm::StringRef cpu,
                      llvm::StringRef features = "");

/// Code of an LLVM dialect module, loaded into this process.
class HostJit {
public:
  /// `cpu` empty: the machine that the test runs on.
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
