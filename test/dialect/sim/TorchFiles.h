// Writes random kernels for random_kernels_on_torch.py: Python text, and the initial and final memory of their calls.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "RandomCall.h"

namespace kpkg::sim::test {
/// Writes `stem`.py (the kernels), `stem`.bin (memory) and `stem`.json (positions in the memory).
llvm::Error writeTorchFiles(llvm::StringRef stem, llvm::MutableArrayRef<RandomKernel> kernels);
} // namespace kpkg::sim::test
