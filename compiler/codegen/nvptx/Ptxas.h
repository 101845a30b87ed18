// PTX to machine code by NVIDIA's assembler, run as a child process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/nvptx/PtxasReport.h"
#include "llvm/Support/Error.h"

namespace kpkg::compiler {

struct Cubin {
  std::string bytes;
  PtxasReport report;
};

/// No ptxas is installed, which is not an error of one that is.
class NoPtxas : public llvm::ErrorInfo<NoPtxas, llvm::StringError> {
public:
  explicit NoPtxas(const std::string &message) : ErrorInfo(message, llvm::inconvertibleErrorCode()) {}
  static char ID;
};

/// An installed ptxas. Cheap to copy; threads may use it at the same time.
class Ptxas {
public:
  /// How long to look for good code.
  enum class Effort { Most, Less, Least };

  /// Looks at KPKG_PTXAS, then where findTool() does. The error is NoPtxas, and says where it looked, or of the one
  /// that was found.
  static llvm::Expected<Ptxas> find();
  /// The one at `path`, which must be able to say its version.
  static llvm::Expected<Ptxas> at(llvm::StringRef path);

  const std::string &path() const { return program; }
  /// "13.0.88"
  const std::string &version() const { return versionText; }

  /// Machine code for `chip` ("sm_90a"). Results are kept by content under KPKG_CACHE_DIR (default: the user's cache
  /// folder; empty: nowhere) once they are seen to have the kernels. The error has what ptxas said; a chip that this
  /// version does not know is named as such. It is a ToolFailed where ptxas cannot be run or writes something else.
  llvm::Expected<Cubin> assemble(llvm::StringRef ptx, llvm::StringRef chip, Effort effort = Effort::Most) const;

private:
  std::string program;
  std::string versionText;
};

} // namespace kpkg::compiler
