// Programs of a CUDA toolkit, run as child processes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kpkg::compiler {

struct ToolOutcome {
  int code = 0;
  std::string output;  ///< what it wrote to both of its streams
  std::string failure; ///< why it could not run at all
};

/// A tool cannot be run, or does not do what it is for: nothing that the source could change.
class ToolFailed : public llvm::ErrorInfo<ToolFailed, llvm::StringError> {
public:
  explicit ToolFailed(const std::string &message) : ErrorInfo(message, llvm::inconvertibleErrorCode()) {}
  static char ID;
};

/// Runs `program`, without a shell; gives up after `seconds`.
ToolOutcome runTool(llvm::StringRef program, llvm::ArrayRef<llvm::StringRef> arguments, unsigned seconds = 600);

/// The path of an installed tool, or empty. Looks at CUDA_HOME and CUDA_PATH, PATH, /usr/local/cuda, then at what
/// PyPI's nvidia packages and Triton have put into the active Python environment, that of `python3`, and the command's
/// own.
std::string findTool(llvm::StringRef name);

} // namespace kpkg::compiler
