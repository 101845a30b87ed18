// GPU modules in the LLVM and NVVM dialects to PTX text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kpkg::compiler {

/// PTX 9.0 of `module`, a gpu.module or builtin.module whose functions are llvm.func, for `chip` ("sm_90a"), at
/// optimisation level 0 to 3. Threads may call it at the same time, each with a module of its own context. What the
/// chip cannot do must have been refused before: LLVM ends the process on it.
llvm::Expected<std::string> compileToPtx(mlir::Operation *module, llvm::StringRef chip, unsigned optLevel);

/// The optimised LLVM IR of the same, as text.
llvm::Expected<std::string> compileToNvptxLlvmText(mlir::Operation *module, llvm::StringRef chip, unsigned optLevel);

} // namespace kpkg::compiler
