// Runs builds in a child process, and says what failed if the child crashes or hangs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/reproducer/Reproducer.h"
#include "compiler/driver/CompileOptions.h"
#include "tools/kpkg/Commands.h"
#include "tools/kpkg/supervise/Child.h"
#include <functional>

namespace kpkg::command {

/// Seconds for the work on one kernel instance, and for one run of a tool such as ptxas. 0 is no limit.
struct Limits {
  unsigned instance = 1800;
  unsigned tool = 600;
};

/// Adds --instance-limit and --tool-limit.
void addLimits(CLI::App &command, Limits &limits);

/// Runs `body` in a child process. If the compiler fails in it, prints the instance, the target, the pass and the
/// cause, and keeps a reduced reproducer, which a message names. The instance is compiled again for that, in children.
ExitCode supervised(const compiler::CompileOptions &options, const Limits &limits,
                    const std::function<ExitCode()> &body);

/// How a reproducer ended.
struct Repetition {
  Ending ending;
  std::string step;    ///< the pass in which it failed
  std::string message; ///< what the child printed
  /// Returns whether both are the same failure.
  bool isLike(const Repetition &other) const;
};

/// Runs a reproducer in a child process.
Repetition repeat(const compiler::Reproducer &reproducer, unsigned limit);

/// Returns a smaller reproducer with the same failure as `wanted`, after at most `seconds`.
compiler::Reproducer reducedInTime(const compiler::Reproducer &reproducer, const Repetition &wanted, unsigned seconds);

/// Returns a failure in words: "SIGSEGV, it read where nothing is, in the pass cse".
std::string describe(const Repetition &failure, unsigned limit);

} // namespace kpkg::command
