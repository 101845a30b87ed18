// Checks an assembler's output against its input.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/Support/Error.h"

namespace kpkg::compiler {

/// Returns an error unless `cubin` is an ELF file for CUDA with code for every kernel of `ptx`. Output is checked
/// before it is cached, because the cache is never checked again.
llvm::Error checkCubin(llvm::StringRef cubin, llvm::StringRef ptx);

} // namespace kpkg::compiler
