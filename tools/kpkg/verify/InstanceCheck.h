// Runs every instance of a package that this machine can run, and compares with the packaged references.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Commands.h"
#include <kpkg/kpkg.hpp>
#include <string>
#include <vector>

namespace kpkg::command::verify {

struct CheckOptions {
  /// Only this op; empty: all that have a reference.
  std::string op;
  /// Arguments as `--input` takes them; the others are drawn.
  std::vector<std::string> inputs;
  /// Drawn cases of each op and dtype.
  int cases = 4;
  uint64_t seed = 0;
};

/// Draws calls of each op with a reference. Each instance that can run a launch of such a call runs it, and prints how
/// far its results were from the reference's. An instance that was wrong, or that says to be deterministic and was not,
/// is named with inputs that show it.
ExitCode checkInstances(const Library &library, const CheckOptions &options);

} // namespace kpkg::command::verify
