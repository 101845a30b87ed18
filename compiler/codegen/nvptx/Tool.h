// Runs programs of a CUDA toolkit as child processes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kpkg::compiler {

struct ToolOutcome {
  int code = 0;        ///< its exit code; -1 if it could not run, -2 if a signal or the time limit ended it
  std::string output;  ///< both of its output streams
  std::string failure; ///< why it could not run or did not end
};

/// Error: a tool cannot be run, or does not work. No change of the source could fix it.
class ToolFailed : public llvm::ErrorInfo<ToolFailed, llvm::StringError> {
public:
  explicit ToolFailed(const std::string &message) : ErrorInfo(message, llvm::inconvertibleErrorCode()) {}
  static char ID;
};

/// Returns the seconds that a tool may take: KPKG_TOOL_LIMIT, by default 600; 0 is no limit.
unsigned toolLimit();

/// Runs `program` without a shell, and ends it after `seconds` unless that is 0. Threads may run tools concurrently.
ToolOutcome runTool(llvm::StringRef program, llvm::ArrayRef<llvm::StringRef> arguments, unsigned seconds = toolLimit());

/// Returns the path of an installed tool, or an empty string.
///
/// It searches CUDA_HOME and CUDA_PATH, PATH and /usr/local/cuda. Then it searches PyPI's nvidia packages and Triton in
/// three Python environments: the active one, that of `python3`, and the command's own.
std::string findTool(llvm::StringRef name);

} // namespace kpkg::compiler
