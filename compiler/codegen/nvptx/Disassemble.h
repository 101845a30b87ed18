// Machine code of GPUs as text, by the toolkit's disassembler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/Support/Error.h"

namespace kpkg::compiler {

/// The path of nvdisasm or cuobjdump: KPKG_NVDISASM, else where findTool() looks. The error says how to get one.
llvm::Expected<std::string> findDisassembler();

/// SASS of a cubin.
llvm::Expected<std::string> disassemble(llvm::StringRef cubin);

} // namespace kpkg::compiler
