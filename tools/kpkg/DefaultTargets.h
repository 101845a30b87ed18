// What a build is for when the command line does not say.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string>
#include <vector>

namespace kpkg::command {

struct DefaultTargets {
  /// As `--target` takes them; empty: this machine's.
  std::vector<std::string> names;
  /// Where they come from, and what was left out; each a note.
  std::vector<std::string> notes;
};

/// Those of KPKG_TARGET, a list with commas; else those of TORCH_CUDA_ARCH_LIST beside this machine's CPU, as PyTorch's
/// extensions are built: "8.0;9.0a+PTX", with names of architectures too. What kpkg does not serve is left out.
DefaultTargets defaultTargets();

/// The pieces of `text` between commas; empty ones stay.
std::vector<std::string> splitTargets(const std::string &text);

} // namespace kpkg::command
