// Prints why the GPU code of a kernel is as it is: optimisations that were applied or not, launches and hints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Commands.h"
#include <kpkg/kpkg.hpp>
#include <string>

namespace kpkg::command {

struct WhyOptions {
  std::string kernel; ///< empty: no report is asked for
  bool allVariants = false;
};

/// Adds --why, which is returned, and --all-variants.
CLI::Option *addWhyOptions(CLI::App &command, WhyOptions &options);

/// Prints the report on the kernel's GPU instances, with equal reports once. `package` names the library in errors.
/// Without --all-variants, variants for other strides and alignments are left out if others exist.
ExitCode printWhy(const Library &library, const std::string &package, const WhyOptions &options);

} // namespace kpkg::command
