// What ptxas says about the kernels that it assembled.
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
  /// Bytes per thread in local memory: the whole frame, and what of it spilled registers store and load.
  unsigned stackBytes = 0;
  unsigned spillStores = 0;
  unsigned spillLoads = 0;
  /// Static shared memory; dynamic shared memory is the launch's.
  unsigned sharedBytes = 0;
  unsigned barriers = 0;
};

struct PtxasReport {
  std::vector<KernelReport> kernels;
  /// Every line that is neither information nor progress, as ptxas wrote it.
  std::vector<std::string> warnings;

  const KernelReport *find(llvm::StringRef symbol) const;
};

/// Reads the output of `ptxas -v` (CUDA 13).
PtxasReport parsePtxasReport(llvm::StringRef text);

/// Why this code must not be used: registers that spill, a stack frame, wgmma that ptxas serialised, setmaxnreg that it
/// ignored, and any other warning. Empty when it is as fast as it was written.
std::vector<std::string> lint(const PtxasReport &report);

} // namespace kpkg::compiler
