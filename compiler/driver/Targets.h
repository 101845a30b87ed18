// What a package is built for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/CpuTarget.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace kpkg::compiler {

struct BuildTargets {
  std::vector<const lower::cpu::CpuTarget *> cpus;
  std::vector<std::string> chips; ///< machine code for them: "sm_90a"
  std::vector<std::string> ptx;   ///< PTX that the driver compiles, for these chips and newer ones: "sm_80"
  bool areChipsNamed = false;     ///< some were asked for by name, not as those of this machine
  /// Names that stand for others, in words: "target sm_90 means sm_90a: ..."
  std::vector<std::string> notes;

  bool hasGpu() const { return !chips.empty() || !ptx.empty(); }
  /// The names that a package uses, comma-separated.
  std::string str() const;
};

/// Targets by name, each once: CPU levels, chips (sm_80, ...), names of devices (a100, h200, ...), "ptx" and "native",
/// which is the best level of this processor and the chips of this machine's GPUs. No name at all means "native", and
/// PTX beside a GPU. A chip that is served in its "a" form only ("sm_90") means that. An error is a WrongUse where a
/// name is unknown, with the nearest ones.
llvm::Expected<BuildTargets> resolveTargets(llvm::ArrayRef<std::string> names);

/// The chips of the GPUs that NVIDIA's driver on this machine reports; empty without a driver.
std::vector<std::string> nativeChips();

} // namespace kpkg::compiler
