// Resolves the targets of a package.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/CpuTarget.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace kpkg::compiler {

struct BuildTargets {
  std::vector<const lower::cpu::CpuTarget *> cpus;
  std::vector<std::string> chips; ///< with machine code: "sm_90a"
  std::vector<std::string> ptx;   ///< with PTX, which the driver compiles for these chips and newer ones: "sm_80"
  bool tpu = false;               ///< with tile programs, which `kpkg.jax` makes Pallas kernels of
  bool areChipsNamed = false;     ///< some were named explicitly, not detected on this machine
  /// Notes on aliases: "target sm_90 means sm_90a: ..."
  std::vector<std::string> notes;

  bool hasGpu() const { return !chips.empty() || !ptx.empty(); }
  /// Returns the names for the package, comma-separated.
  std::string str() const;
};

/// Returns the names of all chips, or of all levels of CPUs, without aliases.
std::vector<std::string> targetNames(bool ofGpus);

/// Resolves targets by name, each once: CPU levels, chips (sm_80, ...), devices (a100, h200, ...), "ptx", "tpu" and
/// "native".
///
/// Their order is that of the tables of all targets, whatever the order of the names.
///
/// "native" is the highest level of this processor and the chips of this machine's GPUs. No name at all means "native",
/// plus PTX if there is a GPU. A chip that is only supported in its "a" form ("sm_90") means that form. Unknown names
/// return WrongUse with the nearest names.
llvm::Expected<BuildTargets> resolveTargets(llvm::ArrayRef<std::string> names);

/// Returns the chips of the GPUs that NVIDIA's driver on this machine reports; empty without a driver.
std::vector<std::string> nativeChips();

} // namespace kpkg::compiler
