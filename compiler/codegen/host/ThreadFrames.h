// Finds out how much memory the coroutines of threads need, once LLVM has split them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/host/HostCode.h"

namespace llvm {
class Module;
} // namespace llvm

namespace kpkg::compiler {

/// Defines the sizes of frames in an optimised module. Returns a line "kernel bytes" for each kernel with coroutines.
std::string settleFrames(llvm::Module &module);

/// Adds the frames of these lines to the scratch memory of the kernels. Returns false if the size of one is missing.
bool addFrames(std::vector<HostKernel> &kernels, llvm::StringRef lines);

} // namespace kpkg::compiler
