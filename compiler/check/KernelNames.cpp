// Names kernels in a package: by their source name, and with the module if several modules have that name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"

#include <algorithm>
#include <filesystem>

namespace kpkg::compiler {

/// Returns the parts of a path without its extension: "kernels_src", "sparse", "blocks".
static std::vector<std::string> partsOf(const std::string &path) {
  std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  normal.replace_extension();
  std::vector<std::string> parts;
  for (const auto &part : normal)
    if (part != "/" && part != "." && part != "..")
      parts.push_back(part.string());
  return parts;
}

/// Returns the last parts, such as "sparse.blocks" for two.
static std::string lastParts(const std::vector<std::string> &parts, size_t count) {
  std::string text;
  for (size_t i = parts.size() - std::min(count, parts.size()); i < parts.size(); ++i)
    text += (text.empty() ? "" : ".") + parts[i];
  return text;
}

void Checker::nameKernels() {
  std::map<std::string, std::vector<const FunctionEntity *>> byName;
  for (const ModuleScope *module : loadOrder)
    for (const FunctionEntity &function : module->functions)
      for (const ast::Decorator &decorator : function.syntax->decorators)
        if (decorator.name == "kernel") {
          byName[function.name()].push_back(&function);
          break;
        }
  for (const auto &[name, functions] : byName) {
    std::vector<std::vector<std::string>> paths;
    size_t longest = 0;
    for (const FunctionEntity *function : functions) {
      paths.push_back(partsOf(static_cast<const ModuleScope *>(function->module)->path));
      longest = std::max(longest, paths.back().size());
    }
    // Uses the fewest parts that distinguish all of them. Two kernels of one name in a module are an error that is
    // reported elsewhere.
    auto tellApart = [&](size_t count) {
      std::set<std::string> names;
      for (const auto &parts : paths)
        names.insert(lastParts(parts, count));
      return names.size() == paths.size();
    };
    size_t count = 0;
    if (functions.size() > 1)
      for (count = 1; count < longest && !tellApart(count);)
        ++count;
    for (size_t i = 0; i < functions.size(); ++i)
      kernelNames[functions[i]] = count == 0 ? name : lastParts(paths[i], count) + "." + name;
  }
}

} // namespace kpkg::compiler
