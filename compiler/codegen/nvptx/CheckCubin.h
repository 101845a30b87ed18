// Whether an assembler's output is what it was asked for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/Support/Error.h"

namespace kpkg::compiler {

/// An error unless `cubin` is an ELF file for CUDA in which every kernel of `ptx` has code. What an assembler wrote is
/// kept in a cache, where nobody looks at it again.
llvm::Error checkCubin(llvm::StringRef cubin, llvm::StringRef ptx);

} // namespace kpkg::compiler
