// Declares the diagnostics that an editor shows: those of all checked files, by the file that they are in.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/lsp/Workspace.h"
#include "llvm/Support/JSON.h"

namespace kpkg::lsp {

/// Not thread-safe: the server locks it.
class PublishedDiagnostics {
public:
  /// Replaces what the check of `root` found. Returns the paths whose diagnostics may differ now.
  std::set<std::string> set(const std::string &root, std::map<std::string, std::vector<PlacedDiagnostic>> found);
  /// Returns the parameters of `textDocument/publishDiagnostics`.
  llvm::json::Value of(const std::string &path, Workspace &workspace) const;
  /// Returns the fixes of diagnostics that overlap a range of a file.
  std::vector<llvm::lsp::CodeAction> fixes(const std::string &path, llvm::lsp::Range range, Workspace &workspace) const;

private:
  std::map<std::string, std::map<std::string, std::vector<PlacedDiagnostic>>> byRoot;

  /// Several checks may find one error in a module that they import.
  std::vector<PlacedDiagnostic> distinct(const std::string &path) const;
};

} // namespace kpkg::lsp
