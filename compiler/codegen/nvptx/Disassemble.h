// Prints machine code of GPUs with the CUDA toolkit's disassembler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/Support/Error.h"

namespace kpkg::compiler {

/// Returns the path of nvdisasm or cuobjdump: KPKG_NVDISASM, else the result of findTool(). The error says how to
/// install one.
llvm::Expected<std::string> findDisassembler();

/// Returns the SASS of a cubin.
llvm::Expected<std::string> disassemble(llvm::StringRef cubin);

} // namespace kpkg::compiler
