// Compiles GPU modules in the LLVM and NVVM dialects to PTX text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kpkg::compiler {

/// Returns PTX 9.0 of `module` for `chip` ("sm_90a"), at optimisation level 0 to 3.
///
/// `module` is a gpu.module or builtin.module whose functions are llvm.func. Threads may call this concurrently, each
/// with a module of its own context. Callers must have refused operations that the chip does not support: LLVM aborts
/// the process on them.
llvm::Expected<std::string> compileToPtx(mlir::Operation *module, llvm::StringRef chip, unsigned optLevel);

/// Returns the optimised LLVM IR of the module, as text.
llvm::Expected<std::string> compileToNvptxLlvmText(mlir::Operation *module, llvm::StringRef chip, unsigned optLevel);

} // namespace kpkg::compiler
