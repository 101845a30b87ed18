// Declares the check of one open file for an editor: its diagnostics, and the types that it found.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Program.h"
#include "compiler/lsp/Types.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace kpkg::lsp {

/// The texts of open files, by their canonical path.
using OpenTexts = std::map<std::string, Text>;

/// A replacement in a file.
struct Edit {
  std::string path;
  llvm::lsp::TextEdit edit;
};

/// A diagnostic in one file, ready for the protocol.
struct PlacedDiagnostic {
  std::string code, message;
  llvm::lsp::DiagnosticSeverity severity;
  llvm::lsp::Range range;
  struct Related {
    std::string path, message;
    llvm::lsp::Range range;
  };
  std::vector<Related> related;
  std::vector<Edit> fixes;
  bool operator==(const PlacedDiagnostic &other) const {
    return range == other.range && code == other.code && message == other.message;
  }
};

struct Analysis {
  /// By path; diagnostics without a place are in the checked file.
  std::map<std::string, std::vector<PlacedDiagnostic>> diagnostics;
  std::map<std::string, std::shared_ptr<const Types>> types;
  /// The paths of all files that were read, that of the checked one among them.
  std::vector<std::string> files;
};

struct AnalysisOptions {
  compiler::ProgramOptions program;
  std::string chip; ///< for whose GPU code layouts are shown; empty for none
};

/// Checks a file and its imports for CPUs and GPUs, as `kpkg check` does. `early` receives errors that the first
/// instances have, if further ones take more time. `done` receives the results. If there are no errors, it receives
/// them again with the layouts of the first instance of each kernel in the file. The rest is left out once `isStale`.
void analyse(const std::string &path, const OpenTexts &texts, const AnalysisOptions &options,
             llvm::function_ref<bool()> isStale, llvm::function_ref<void(const Analysis &)> early,
             llvm::function_ref<void(const Analysis &)> done);

} // namespace kpkg::lsp
