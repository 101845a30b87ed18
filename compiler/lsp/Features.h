// Declares the answers to an editor's requests, each in a file of its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/lsp/Workspace.h"
#include "llvm/Support/Error.h"

namespace kpkg::lsp {

/// Hover.cpp: the declaration, types, values and documentation of the name at an offset.
std::optional<llvm::lsp::Hover> hoverAt(Workspace &workspace, const File &file, uint32_t offset);

/// Definition.cpp
std::vector<llvm::lsp::Location> definitionAt(Workspace &workspace, const File &file, uint32_t offset);
std::vector<llvm::lsp::Location> referencesAt(Workspace &workspace, const File &file, uint32_t offset,
                                              bool withDeclarations);
/// Returns the occurrences in this file.
std::vector<llvm::lsp::Range> highlightsAt(Workspace &workspace, const File &file, uint32_t offset);

/// Rename.cpp: returns the range of the name; an error with the reason if it cannot be renamed.
llvm::Expected<llvm::lsp::Range> renameableAt(Workspace &workspace, const File &file, uint32_t offset);
llvm::Expected<llvm::lsp::WorkspaceEdit> renamed(Workspace &workspace, const File &file, uint32_t offset,
                                                 const std::string &newName);

/// Completion.cpp
llvm::lsp::CompletionList completionAt(Workspace &workspace, const File &file, uint32_t offset);

/// InlayHints.cpp: the types of variables that are declared without one.
std::vector<llvm::lsp::InlayHint> inlayHints(Workspace &workspace, const File &file, llvm::lsp::Range range);

/// DocumentSymbols.cpp
std::vector<llvm::lsp::DocumentSymbol> documentSymbols(Workspace &workspace, const File &file);

/// FormatText.cpp: returns no edit if the text has the layout of `kpkg fmt` already; an error if it has syntax errors.
llvm::Expected<std::vector<llvm::lsp::TextEdit>> formatted(const File &file);

} // namespace kpkg::lsp
