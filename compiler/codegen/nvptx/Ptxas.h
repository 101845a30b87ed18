// Assembles PTX to machine code with NVIDIA's ptxas, run as a child process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/nvptx/PtxasReport.h"
#include "compiler/codegen/nvptx/Tool.h"
#include "llvm/Support/Error.h"

namespace kpkg::compiler {

struct Cubin {
  std::string bytes;
  PtxasReport report;
};

/// Error: no ptxas is installed. Errors of an installed ptxas have other types.
class NoPtxas : public llvm::ErrorInfo<NoPtxas, llvm::StringError> {
public:
  explicit NoPtxas(const std::string &message) : ErrorInfo(message, llvm::inconvertibleErrorCode()) {}
  static char ID;
};

/// An installed ptxas. Cheap to copy; threads may use it concurrently.
class Ptxas {
public:
  /// How much time ptxas spends on optimisation.
  enum class Effort { Most, Less, Least };

  /// Finds ptxas by KPKG_PTXAS, else by findTool(). The error is NoPtxas with the searched places, or an error of the
  /// ptxas that was found.
  static llvm::Expected<Ptxas> find();
  /// Returns the ptxas at `path`, which must report its version.
  static llvm::Expected<Ptxas> at(llvm::StringRef path);

  const std::string &path() const { return program; }
  /// "13.0.88"
  const std::string &version() const { return versionText; }

  /// Returns machine code for `chip` ("sm_90a"). Results with all kernels are cached by content in KPKG_CACHE_DIR
  /// (default: the user's cache folder; empty: no cache).
  ///
  /// The error has the messages of ptxas, and names a chip that this version does not know. It is ToolFailed if ptxas
  /// cannot be run, crashes, does not end in time (toolLimit()), or writes something else. The text then names a file
  /// with its input. Later calls return the same error.
  llvm::Expected<Cubin> assemble(llvm::StringRef ptx, llvm::StringRef chip, Effort effort = Effort::Most) const;

  /// Runs it once on the file `input`, which contains `ptx`, with an option such as "-O3" as the level.
  ToolOutcome run(llvm::StringRef ptx, llvm::StringRef chip, llvm::StringRef level, llvm::StringRef input,
                  llvm::StringRef output) const;

private:
  std::string program;
  std::string versionText;
};

} // namespace kpkg::compiler
