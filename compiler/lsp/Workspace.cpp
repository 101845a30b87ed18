// Reads and indexes sources.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Workspace.h"
#include "compiler/check/ImportPaths.h"
#include "compiler/check/Prelude.h"
#include "compiler/syntax/Parse.h"
#include <utility>

namespace kpkg::lsp {

const std::string Workspace::preludePath = "<std>";

Workspace::Workspace(std::vector<std::string> importPaths) : importPaths(std::move(importPaths)) {
  File &file = files[preludePath];
  file.path = preludePath;
  file.text = makeText(preludePath, std::string(compiler::preludeText));
  index(file);
}

void Workspace::index(File &file) {
  if (std::exchange(file.parsed, file.text) == file.text)
    return;
  compiler::DiagnosticEngine diags;
  auto module = compiler::parse(*file.text, diags);
  if (diags.hasErrors() && file.names)
    return; // the index of the last good text stays
  file.names = std::make_shared<Names>(namesOf(*file.text, *module));
  file.textOfNames = file.text;
}

File &Workspace::open(const std::string &path, const std::string &uri, int64_t version, std::string text) {
  File &file = files[path];
  file.path = path;
  file.uri = uri;
  file.isOpen = true;
  file.version = version;
  file.text = makeText(path, std::move(text));
  stamps.erase(path);
  return file;
}

void Workspace::close(const std::string &path) { forget(path); }

void Workspace::forget(const std::string &path) {
  files.erase(path);
  stamps.erase(path);
}

OpenTexts Workspace::openTexts() const {
  OpenTexts texts;
  for (const auto &[path, file] : files)
    if (file.isOpen)
      texts[path] = file.text;
  return texts;
}

File *Workspace::file(const std::string &path) {
  auto known = files.find(path);
  if (known != files.end() && (known->second.isOpen || path == preludePath)) {
    index(known->second);
    return &known->second;
  }
  std::error_code error;
  Stamp stamp{std::filesystem::last_write_time(path, error), 0};
  if (!error)
    stamp.size = std::filesystem::file_size(path, error);
  if (error)
    return nullptr;
  if (known != files.end() && stamps[path] == stamp)
    return &known->second;
  compiler::SourceManager sources;
  std::string reason;
  const compiler::SourceFile *source = sources.load(path, reason);
  if (!source)
    return nullptr;
  File &file = files[path];
  file.path = path;
  if (auto uri = llvm::lsp::URIForFile::fromFile(path))
    file.uri = uri->uri().str();
  else
    llvm::consumeError(uri.takeError());
  file.text = makeText(path, std::string(source->text()));
  stamps[path] = stamp;
  index(file);
  return &file;
}

std::vector<File *> Workspace::all() {
  namespace fs = std::filesystem;
  constexpr size_t mostFiles = 10000;
  std::set<std::string> paths;
  for (const auto &[path, file] : files)
    if (file.isOpen)
      paths.insert(path);
  for (const std::string &folder : folders) {
    std::error_code error;
    auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator entry(folder, options, error), end; entry != end && !error;
         entry.increment(error)) {
      if (entry->path().filename().string().starts_with("."))
        entry.disable_recursion_pending();
      else if (entry->path().extension() == ".k" && paths.size() < mostFiles)
        paths.insert(compiler::canonicalPath(entry->path().string()));
    }
  }
  std::vector<File *> found;
  for (const std::string &path : paths)
    if (File *one = file(path))
      found.push_back(one);
  return found;
}

File *Workspace::moduleOf(const File &from, const std::vector<compiler::ast::Identifier> &module) {
  if (module.size() == 1 && module[0].text == compiler::preludeName)
    return &prelude();
  for (const std::string &folder : compiler::importFolders(from.path, importPaths))
    if (File *found = file(compiler::canonicalPath(compiler::modulePath(folder, module))))
      return found;
  return nullptr;
}

std::optional<Span> Workspace::current(const File &file, Span span) const {
  if (file.textOfNames == file.text)
    return span;
  return TextMap(file.textOfNames->text(), file.text->text()).toNow(span);
}

const Use *Workspace::useAt(const File &file, uint32_t offset) const {
  if (file.textOfNames == file.text)
    return file.names->useAt(offset);
  auto before = TextMap(file.textOfNames->text(), file.text->text()).toBefore(offset);
  return before ? file.names->useAt(*before) : nullptr;
}

const Types::Entry *Workspace::typesOf(const File &file, Span span) const {
  if (!file.types)
    return nullptr;
  if (file.types->text() == file.textOfNames)
    return file.types->at(span);
  TextMap map(file.types->text()->text(), file.textOfNames->text());
  auto begin = map.toBefore(span.begin), end = map.toBefore(span.end);
  return begin && end ? file.types->at({*begin, *end}) : nullptr;
}

llvm::ArrayRef<LayoutAt> Workspace::layoutsAt(const File &file, uint32_t begin) const {
  if (!file.types)
    return {};
  if (file.types->text() == file.textOfNames)
    return file.types->layoutsAt(begin);
  auto before = TextMap(file.types->text()->text(), file.textOfNames->text()).toBefore(begin);
  return before ? file.types->layoutsAt(*before) : llvm::ArrayRef<LayoutAt>();
}

std::shared_ptr<const Types> Workspace::types(const std::string &path) const {
  auto found = files.find(path);
  return found == files.end() ? nullptr : found->second.types;
}

void Workspace::setTypes(const std::string &path, std::shared_ptr<const Types> types) {
  auto found = files.find(path);
  if (found != files.end() && found->second.isOpen)
    found->second.types = std::move(types);
}

} // namespace kpkg::lsp
