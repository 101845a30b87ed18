// Loads modules and declares their names and imports.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"
#include "compiler/check/ImportPaths.h"
#include "compiler/check/Observer.h"
#include "compiler/check/Prelude.h"
#include "compiler/comptime/Fold.h"
#include "compiler/syntax/Parse.h"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace kpkg::compiler {

void Checker::checkDefines() {
  for (const auto &[name, text] : options.defines) {
    bool isKnown = false;
    for (const ModuleScope *module : loadOrder) {
      auto entry = module->entries.find(name);
      isKnown |= module->isRoot && entry != module->entries.end() && entry->second.kind == ModuleScope::Entry::Constant;
    }
    if (!isKnown)
      diags.report(diag::UnknownDefine, {}, name);
  }
}

void Checker::addEntry(ModuleScope &module, const ast::Identifier &name, ModuleScope::Entry entry) {
  entry.range = name.range;
  auto [place, isNew] = module.entries.emplace(name.text, std::move(entry));
  if (!isNew)
    diags.report(diag::Redefined, name.range, name.text).note(diag::DeclaredHere, place->second.range, name.text);
}

/// Returns the prelude's tree. A process parses it once for each number that the file has had. Else most of the time of
/// a small program would go there, and the language server checks many.
static std::shared_ptr<const ast::Module> preludeTree(const SourceFile &file, DiagnosticEngine &diags) {
  static std::mutex lock;
  static std::map<uint32_t, std::shared_ptr<const ast::Module>> trees;
  std::lock_guard guard(lock);
  std::shared_ptr<const ast::Module> &tree = trees[file.id()];
  if (!tree)
    tree = parse(file, diags);
  return tree;
}

ModuleScope *Checker::loadFile(const SourceFile &file, bool isRoot) {
  bool isPrelude = !prelude;
  uint32_t errorsBefore = diags.errorCount();
  std::shared_ptr<const ast::Module> tree = isPrelude ? preludeTree(file, diags) : parse(file, diags);
  auto owned = std::make_unique<ModuleScope>(*this, file.path(), std::move(tree));
  ModuleScope *module = owned.get();
  module->isRoot = isRoot;
  modules[isPrelude ? preludeName : canonicalPath(file.path())] = std::move(owned);
  if (diags.errorCount() != errorsBefore)
    return module; // an unparsable module is not checked further
  declareNames(*module, module->tree->body);
  loadOrder.push_back(module);
  return module;
}

void Checker::loadRoot(const SourceFile &file) {
  if (!prelude)
    prelude = loadFile(sources.add("std.k", std::string(preludeText)));
  loadFile(file, /*isRoot=*/true);
}

/// Returns the language of a file by its name, if it is not a `.k` source; else an empty string.
static std::string foreignLanguage(const std::string &path) {
  static const std::map<std::string, std::string> languages = {
      {".cu", "CUDA C++"},      {".cuh", "CUDA C++"},  {".c", "C"},     {".cc", "C++"},
      {".cpp", "C++"},          {".h", "C++"},         {".hpp", "C++"}, {".py", "Python"},
      {".ptx", "PTX"},          {".mlir", "MLIR"},     {".rs", "Rust"}, {".so", "a library"},
      {".o", "an object file"}, {".kpkg", "a package"}};
  auto found = languages.find(std::filesystem::path(path).extension().string());
  return found == languages.end() ? "" : found->second;
}

void Checker::loadRoot(const std::string &path) {
  if (auto known = modules.find(canonicalPath(path)); known != modules.end()) {
    known->second->isRoot = true;
    return;
  }
  if (std::string language = foreignLanguage(path); !language.empty()) {
    diags.report(diag::ForeignFile, {}, path, language);
    return;
  }
  std::string reason;
  const SourceFile *file = read(path, reason);
  if (!file) {
    diags.report(diag::CannotReadFile, {}, path, reason);
    return;
  }
  loadRoot(*file);
}

const SourceFile *Checker::read(const std::string &path, std::string &reason) {
  const SourceFile *open = observer ? observer->openFile(path) : nullptr;
  return open ? open : sources.load(path, reason);
}

/// Returns advice for a module name of another language; an empty string for other names.
static std::string insteadOfModule(const std::string &name) {
  static const std::set<std::string> ofMojo = {"max",    "kpkg", "gpu",      "tensor",    "layout",       "math",
                                               "memory", "sys",  "compiler", "algorithm", "extensibility"};
  static const std::set<std::string> ofPython = {"torch", "numpy", "triton", "typing", "os", "jax"};
  if (ofMojo.count(name))
    return "remove the line: `register`, `Tensor` and all of the language are always there";
  if (ofPython.count(name))
    return "remove the line: a kernel uses only what the language has";
  return "";
}

ModuleScope *Checker::import(const ast::ImportStmt &stmt, const ModuleScope &from) {
  std::string dotted;
  for (const ast::Identifier &part : stmt.module)
    dotted += (dotted.empty() ? "" : ".") + part.text;
  if (dotted == preludeName)
    return const_cast<ModuleScope *>(prelude);
  std::vector<std::string> folders = importFolders(from.path, options.importPaths);
  for (const std::string &folder : folders) {
    std::string path = modulePath(folder, stmt.module);
    if (auto known = modules.find(canonicalPath(path)); known != modules.end())
      return known->second.get();
    if (!(observer && observer->openFile(path)) && !std::filesystem::exists(path))
      continue;
    std::string reason;
    if (const SourceFile *file = read(path, reason))
      return loadFile(*file);
    diags.report(diag::CannotReadFile, stmt.range, path, reason);
    return nullptr;
  }
  std::string tried;
  for (const std::string &folder : folders)
    tried += (tried.empty() ? "" : ", ") + (folder.empty() ? std::string(".") : folder);
  if (std::string advice = insteadOfModule(stmt.module.front().text); !advice.empty())
    diags.report(diag::ForeignModule, stmt.range, dotted, advice).fix(stmt.range, "");
  else
    diags.report(diag::ModuleNotFound, stmt.range, dotted, tried).note(diag::SharedModules, {});
  return nullptr;
}

void Checker::declareImport(ModuleScope &module, const ast::ImportStmt &stmt) {
  ModuleScope *imported = import(stmt, module);
  ModuleScope::Entry entry;
  entry.module = imported;
  if (!stmt.isFrom) {
    entry.kind = ModuleScope::Entry::Module;
    addEntry(module, stmt.alias ? stmt.alias : stmt.module.back(), entry);
    return;
  }
  for (const auto &name : stmt.names) {
    entry.kind = ModuleScope::Entry::Imported;
    entry.importedName = name.name.text;
    if (imported && !imported->entries.count(name.name.text)) {
      diags.report(diag::UnknownMember, name.name.range, stmt.module.back().text, name.name.text);
      entry.module = nullptr;
    } else {
      entry.module = imported;
    }
    addEntry(module, name.alias ? name.alias : name.name, entry);
  }
}

/// Creates the entity of a struct. Methods without `self`, which declareStruct() reports, have none.
const StructEntity &Checker::addStruct(ModuleScope &module, const ast::StructStmt &syntax) {
  StructEntity &entity = module.structs.emplace_back();
  entity.syntax = &syntax;
  entity.module = &module;
  for (const auto &method : syntax.methods) {
    if (method->parameters.empty())
      continue;
    FunctionEntity &added = entity.methods.emplace_back();
    added.syntax = method.get();
    added.module = &module;
    added.owner = &entity;
  }
  return entity;
}

void Checker::declareNames(ModuleScope &module, const ast::Block &block) {
  for (const ast::StmtPtr &stmt : block) {
    ModuleScope::Entry entry;
    if (auto *function = stmt->as<ast::FunctionStmt>()) {
      FunctionEntity &entity = module.functions.emplace_back();
      entity.syntax = function;
      entity.module = &module;
      entry.kind = ModuleScope::Entry::Function;
      entry.function = &entity;
      addEntry(module, function->name, entry);
    } else if (auto *structure = stmt->as<ast::StructStmt>()) {
      entry.kind = ModuleScope::Entry::Struct;
      entry.structure = &addStruct(module, *structure);
      addEntry(module, structure->name, entry);
    } else if (auto *constant = stmt->as<ast::ComptimeConstStmt>()) {
      entry.constant = constant;
      addEntry(module, constant->name, entry);
    } else if (auto *import = stmt->as<ast::ImportStmt>()) {
      declareImport(module, *import);
    } else if (auto *branches = stmt->as<ast::IfStmt>()) {
      const ast::Block *chosen = branches->elseBody ? &*branches->elseBody : nullptr;
      for (const auto &branch : branches->branches) {
        auto value = evaluator.evaluate(*branch.condition, module);
        if (!value || !value->isBool()) {
          if (value)
            diags.report(diag::ConditionNotBool, branch.condition->range, kindName(*value));
          chosen = nullptr;
          break;
        }
        if (value->asBool()) {
          chosen = &branch.body;
          break;
        }
      }
      if (chosen)
        declareNames(module, *chosen);
    }
  }
}

} // namespace kpkg::compiler
