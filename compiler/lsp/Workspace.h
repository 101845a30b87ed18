// Declares the sources that an editor works on: open texts over the files of its folders, with their indices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/lsp/Analysis.h"
#include "compiler/lsp/Names.h"
#include <filesystem>
#include <set>

namespace kpkg::lsp {

/// One source.
struct File {
  std::string path; ///< canonical; that of the prelude is no file
  std::string uri;  ///< as the editor names it
  bool isOpen = false;
  int64_t version = 0;
  Text text;
  /// The index of the last text without syntax errors.
  std::shared_ptr<const Names> names;
  Text textOfNames;
  Text parsed; ///< the last text that was parsed, with errors or without
  /// The types of the last check.
  std::shared_ptr<const Types> types;
};

/// A symbol of some file.
struct Target {
  std::string path;
  size_t symbol = noSymbol;
  auto operator<=>(const Target &) const = default;
};

/// A place in some file, in its current text.
struct Place {
  const File *file = nullptr;
  Span span;
};

/// Not thread-safe: the server locks it.
class Workspace {
public:
  explicit Workspace(std::vector<std::string> importPaths);

  void addFolder(const std::string &path) { folders.insert(path); }
  void removeFolder(const std::string &path) { folders.erase(path); }
  File &open(const std::string &path, const std::string &uri, int64_t version, std::string text);
  void close(const std::string &path);
  /// Drops what is known about a file that changed on disk.
  void forget(const std::string &path);
  OpenTexts openTexts() const;

  /// Returns the source of that canonical path with a current index, if its text has no syntax errors; null if there is
  /// none.
  File *file(const std::string &path);
  File &prelude() { return files.at(preludePath); }
  bool isPrelude(const std::string &path) const { return path == preludePath; }
  /// Returns the sources of all folders, and the open ones.
  std::vector<File *> all();

  /// Returns the file of a module that a source imports; null if there is none.
  File *moduleOf(const File &from, const std::vector<compiler::ast::Identifier> &module);
  /// Returns the symbol that an occurrence refers to, beyond imports. Nothing for names that no source declares.
  std::optional<Target> targetOf(const File &from, const Use &use);
  std::optional<Target> targetOf(const File &from, size_t symbol);
  const Symbol &symbol(const Target &target) { return file(target.path)->names->symbols[target.symbol]; }
  /// Returns all occurrences of a symbol. Declarations count.
  std::vector<Place> usesOf(const Target &target);
  /// Returns the occurrence at an offset of the current text; null if there is none.
  const Use *useAt(const File &file, uint32_t offset) const;
  /// Returns a span of the index in the current text; nothing if it was edited since.
  std::optional<Span> current(const File &file, Span span) const;
  /// Returns the types that the last check found for an expression of the index; null if there are none.
  const Types::Entry *typesOf(const File &file, Span span) const;
  /// Returns the layouts of tiles whose expression, or variable, begins at an offset of the index.
  llvm::ArrayRef<LayoutAt> layoutsAt(const File &file, uint32_t begin) const;
  /// Returns the types of an open file; null if there are none.
  std::shared_ptr<const Types> types(const std::string &path) const;
  /// Replaces the types of an open file.
  void setTypes(const std::string &path, std::shared_ptr<const Types> types);

private:
  static const std::string preludePath;
  struct Stamp {
    std::filesystem::file_time_type time;
    uintmax_t size = 0;
    bool operator==(const Stamp &) const = default;
  };
  std::set<std::string> folders;
  std::vector<std::string> importPaths;
  std::map<std::string, File> files;
  std::map<std::string, Stamp> stamps; ///< of files that are not open

  void index(File &file);
  std::optional<Target> exported(File &file, const std::string &name, unsigned depth);
  std::optional<Target> follow(const File &from, size_t symbol, unsigned depth);
};

} // namespace kpkg::lsp
