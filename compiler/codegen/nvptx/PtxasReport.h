// Declares the report of ptxas about assembled kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace kpkg::compiler {

struct KernelReport {
  std::string symbol;
  unsigned registers = 0;
  /// Bytes per thread in local memory: the whole frame, and the bytes that spills store and load.
  unsigned stackBytes = 0;
  unsigned spillStores = 0;
  unsigned spillLoads = 0;
  /// Static shared memory. Launches set the size of dynamic shared memory.
  unsigned sharedBytes = 0;
  unsigned barriers = 0;
};

struct PtxasReport {
  std::vector<KernelReport> kernels;
  /// Every line that is neither information nor progress, verbatim.
  std::vector<std::string> warnings;

  const KernelReport *find(llvm::StringRef symbol) const;
};

/// Parses the output of `ptxas -v` (CUDA 13).
PtxasReport parsePtxasReport(llvm::StringRef text);

/// Returns why this code must not be used: register spills, a stack frame, serialised wgmma, ignored setmaxnreg, and
/// any other warning. Empty for code without these problems.
std::vector<std::string> lint(const PtxasReport &report);

} // namespace kpkg::compiler
