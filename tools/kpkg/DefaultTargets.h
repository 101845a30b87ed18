// Determines the targets of a build whose command line names none.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string>
#include <vector>

namespace kpkg::command {

struct DefaultTargets {
  /// In the format of `--target`; empty: this machine's.
  std::vector<std::string> names;
  /// Notes on their source, and on omitted targets.
  std::vector<std::string> notes;
};

/// Returns the targets of KPKG_TARGET, a comma-separated list. Without it, they are those of TORCH_CUDA_ARCH_LIST and
/// this machine's CPU, as for PyTorch extensions. That list is "8.0;9.0a+PTX", also with names of architectures.
/// Targets that kpkg does not support are omitted.
DefaultTargets defaultTargets();

/// Splits `text` at commas, and keeps empty parts.
std::vector<std::string> splitTargets(const std::string &text);

} // namespace kpkg::command
