// Declares the parameters of requests for which LLVM's library has no type.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/Support/LSP/Protocol.h"

namespace kpkg::lsp {

struct InitializeRequest {
  std::vector<std::string> folders; ///< URIs
};
bool fromJSON(const llvm::json::Value &value, InitializeRequest &result, llvm::json::Path path);

struct RenameRequest : llvm::lsp::TextDocumentPositionParams {
  std::string newName;
};
bool fromJSON(const llvm::json::Value &value, RenameRequest &result, llvm::json::Path path);

struct FormatRequest {
  llvm::lsp::TextDocumentIdentifier textDocument;
};
bool fromJSON(const llvm::json::Value &value, FormatRequest &result, llvm::json::Path path);

struct FoldersChange {
  std::vector<std::string> added, removed; ///< URIs
};
bool fromJSON(const llvm::json::Value &value, FoldersChange &result, llvm::json::Path path);

struct FilesChange {
  std::vector<std::string> uris;
};
bool fromJSON(const llvm::json::Value &value, FilesChange &result, llvm::json::Path path);

/// Returns the canonical path of a URI; nothing if it is no file.
std::optional<std::string> pathOf(llvm::StringRef uri);

} // namespace kpkg::lsp
