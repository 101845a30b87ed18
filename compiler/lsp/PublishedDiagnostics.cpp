// Merges and writes diagnostics.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/PublishedDiagnostics.h"
#include <algorithm>

namespace kpkg::lsp {

namespace json = llvm::json;

std::set<std::string> PublishedDiagnostics::set(const std::string &root,
                                                std::map<std::string, std::vector<PlacedDiagnostic>> found) {
  std::set<std::string> paths = {root}; // an editor learns of a check without errors, too
  for (const auto *files : {&byRoot[root], &found})
    for (const auto &[path, diagnostics] : *files)
      paths.insert(path);
  byRoot[root] = std::move(found);
  return paths;
}

std::vector<PlacedDiagnostic> PublishedDiagnostics::distinct(const std::string &path) const {
  std::vector<PlacedDiagnostic> all;
  for (const auto &[root, files] : byRoot)
    if (auto found = files.find(path); found != files.end())
      for (const PlacedDiagnostic &one : found->second)
        if (std::find(all.begin(), all.end(), one) == all.end())
          all.push_back(one);
  return all;
}

/// Returns the URI by which the editor knows a path.
static std::string uriOf(const std::string &path, Workspace &workspace) {
  File *file = workspace.file(path);
  return file ? file->uri : "file://" + path;
}

json::Value PublishedDiagnostics::of(const std::string &path, Workspace &workspace) const {
  json::Array list;
  for (const PlacedDiagnostic &one : distinct(path)) {
    json::Array related;
    for (const PlacedDiagnostic::Related &note : one.related)
      related.push_back(json::Object{
          {"message", note.message},
          {"location", json::Object{{"uri", uriOf(note.path, workspace)}, {"range", toJSON(note.range)}}}});
    json::Object diagnostic{{"range", toJSON(one.range)},
                            {"severity", static_cast<int>(one.severity)},
                            {"source", "kpkg"},
                            {"message", one.message},
                            {"relatedInformation", std::move(related)}};
    if (!one.code.empty())
      diagnostic["code"] = one.code;
    list.push_back(std::move(diagnostic));
  }
  json::Object parameters{{"uri", uriOf(path, workspace)}, {"diagnostics", std::move(list)}};
  File *file = workspace.file(path);
  if (file && file->isOpen)
    parameters["version"] = file->version;
  return parameters;
}

std::vector<llvm::lsp::CodeAction> PublishedDiagnostics::fixes(const std::string &path, llvm::lsp::Range range,
                                                               Workspace &workspace) const {
  std::vector<llvm::lsp::CodeAction> actions;
  for (const PlacedDiagnostic &one : distinct(path)) {
    bool overlaps = one.range.start <= range.end && range.start <= one.range.end;
    for (const Edit &fix : one.fixes) {
      if (!overlaps)
        continue;
      llvm::lsp::CodeAction action;
      action.title = fix.edit.newText.empty() ? "Remove this" : "Write `" + fix.edit.newText + "`";
      action.kind = llvm::lsp::CodeAction::kQuickFix.str();
      action.isPreferred = one.fixes.size() == 1;
      action.edit.emplace();
      action.edit->changes[uriOf(fix.path, workspace)] = {fix.edit};
      actions.push_back(std::move(action));
    }
  }
  return actions;
}

} // namespace kpkg::lsp
