// Reads the parameters of requests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Requests.h"
#include "compiler/check/ImportPaths.h"
#include "llvm/Support/JSON.h"

namespace kpkg::lsp {

using namespace llvm::json;

/// Appends the `uri` members of an array's objects, which may be absent.
static void addUris(const Array *items, std::vector<std::string> &uris) {
  if (!items)
    return;
  for (const Value &item : *items)
    if (auto *object = item.getAsObject())
      if (auto uri = object->getString("uri"))
        uris.push_back(uri->str());
}

bool fromJSON(const Value &value, InitializeRequest &result, Path path) {
  const Object *object = value.getAsObject();
  if (!object) {
    path.report("expected object");
    return false;
  }
  addUris(object->getArray("workspaceFolders"), result.folders);
  if (auto root = object->getString("rootUri"); root && result.folders.empty())
    result.folders.push_back(root->str());
  return true;
}

bool fromJSON(const Value &value, RenameRequest &result, Path path) {
  ObjectMapper mapper(value, path);
  return mapper && fromJSON(value, static_cast<llvm::lsp::TextDocumentPositionParams &>(result), path) &&
         mapper.map("newName", result.newName);
}

bool fromJSON(const Value &value, FormatRequest &result, Path path) {
  ObjectMapper mapper(value, path);
  return mapper && mapper.map("textDocument", result.textDocument);
}

bool fromJSON(const Value &value, FoldersChange &result, Path path) {
  const Object *object = value.getAsObject();
  if (const Object *event = object ? object->getObject("event") : nullptr) {
    addUris(event->getArray("added"), result.added);
    addUris(event->getArray("removed"), result.removed);
  }
  return true;
}

bool fromJSON(const Value &value, FilesChange &result, Path path) {
  const Object *object = value.getAsObject();
  addUris(object ? object->getArray("changes") : nullptr, result.uris);
  return true;
}

std::optional<std::string> pathOf(llvm::StringRef uri) {
  auto file = llvm::lsp::URIForFile::fromURI(uri);
  if (!file) {
    llvm::consumeError(file.takeError());
    return std::nullopt;
  }
  return compiler::canonicalPath(file->file().str());
}

} // namespace kpkg::lsp
