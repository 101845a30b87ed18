// Runs every instance of a package that this machine can run, and compares it with the packaged references.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Commands.h"
#include <kpkg/kpkg.hpp>
#include <string>
#include <vector>

namespace kpkg::command::verify {

struct CheckOptions {
  /// Only this op; empty: all ops with a reference.
  std::string op;
  /// Arguments in the format of `--input`; the others are drawn.
  std::vector<std::string> inputs;
  /// Drawn cases for each op and dtype.
  int cases = 4;
  uint64_t seed = 0;
};

/// Draws calls of each op with a reference. Each instance that can run a launch of such a call runs it, and its errors
/// relative to the reference are printed. Wrong instances, and instances that claim to be deterministic but are not,
/// are listed with inputs that show it. So are ops with an argument `batch_invariant` that are not.
ExitCode checkInstances(const Library &library, const CheckOptions &options);

} // namespace kpkg::command::verify
