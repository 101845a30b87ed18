// Runs a part of the command in a child process, which may crash or hang.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <functional>
#include <string>

namespace kpkg::command {

/// How a child process ended.
struct Ending {
  int code = 0;        ///< its exit code
  int signal = 0;      ///< that ended it, or 0
  bool isLate = false; ///< it was ended because work took longer than the limit
  bool isGood() const { return signal == 0 && !isLate; }
};

struct ChildOptions {
  unsigned limit = 0;          ///< seconds for each recorded activity; 0 is none
  std::string temporaryFolder; ///< for temporary files of the child, if not empty
  std::string errorFile;       ///< receives its standard output and error, if not empty
};

/// Runs `body` in a child process and returns its exit code. This process must have no other threads. Tools that the
/// child has started end with it.
///
/// A signal that interrupts this process interrupts the child. Then this process ends by it after `cleanUp`.
Ending runChild(const std::function<int()> &body, const ChildOptions &options, const std::function<void()> &cleanUp);

} // namespace kpkg::command
