// Adds rows of tuning tables from files in source folders, for the instances of a build.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/pack/TuningRows.h"
#include "compiler/pack/Manifest.h"
#include "runtime/manifest/Write.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"
#include <nlohmann/json.hpp>

namespace kpkg::compiler {

using nlohmann::json;

/// Returns whether a row of the file `table` that says `name` is for `kernel`. Rows of a folder may use the name in its
/// sources.
static bool isCalled(const KernelRecord &kernel, const json &name, llvm::StringRef table) {
  if (name == kernel.name)
    return true;
  llvm::StringRef folder = llvm::sys::path::parent_path(table);
  return name == kernel.ownName && llvm::StringRef(kernel.path).starts_with(folder);
}

static bool isFor(const json &row, const PackedInstance &instance, const Program &program, llvm::StringRef table) {
  const KernelRecord &kernel = program.kernels()[instance.kernel];
  if (!isCalled(kernel, row.at("kernel"), table) || row.at("target") != instance.target ||
      row.at("variant") != instance.variant)
    return false;
  for (auto [parameter, value] : llvm::zip(kernel.parameters, instance.parameters)) {
    const json &values = row.at(parameter.isTuned ? "choice" : "params");
    if (!values.contains(parameter.name) || values.at(parameter.name) != manifest::toJson(valueRecord(value)))
      return false;
  }
  return row.at("params").size() + row.at("choice").size() == kernel.parameters.size();
}

llvm::Error addTuningRows(PackageContents &contents, const std::string &name, const std::string &text,
                          std::vector<std::string> &notes) {
  auto failure = [&](const std::string &why) {
    return llvm::createStringError("%s is no tuning table: %s", name.c_str(), why.c_str());
  };
  try {
    json table = json::parse(text);
    if (table.at("format") != 1)
      return failure("its format is not 1");
    size_t others = 0;
    for (json row : table.at("rows")) {
      auto found = llvm::find_if(contents.instances, [&](const PackedInstance &instance) {
        return isFor(row, instance, *contents.program, name);
      });
      if (found == contents.instances.end()) {
        // A folder's table has rows for more targets than a build.
        others += llvm::any_of(contents.instances,
                               [&](const PackedInstance &instance) { return row.at("target") == instance.target; });
        continue;
      }
      json choice = row.at("choice");
      row.erase("choice");
      row["kernel"] = contents.program->kernels()[found->kernel].name;
      if (!contents.tuning.emplace(row.dump(), choice.dump()).second)
        return failure("there are two rows " + row.dump());
    }
    if (others)
      notes.push_back(name + ": " + std::to_string(others) + " rows are for instances that this build does not have");
  } catch (const json::exception &error) {
    return failure(error.what());
  }
  return llvm::Error::success();
}

} // namespace kpkg::compiler
