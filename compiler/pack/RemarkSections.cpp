// Writes the remarks of passes to the sections of a package that `kpkg info --why` reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/pack/RemarkSections.h"
#include <nlohmann/json.hpp>

namespace kpkg::compiler {

namespace {

using nlohmann::json;

/// A list of different values, which are referred to by number.
class Table {
public:
  size_t number(const json &value) {
    auto [entry, isNew] = numbers.try_emplace(value.dump(), values.size());
    if (isNew)
      values.push_back(value);
    return entry->second;
  }
  json values = json::array();

private:
  std::map<std::string, size_t> numbers;
};

struct TargetRemarks {
  Table remarks, lists;
  json instances = json::object(); ///< numbers of lists by the sections of code
};

} // namespace

std::vector<std::pair<std::string, std::string>> remarkSections(llvm::ArrayRef<PackedInstance> instances) {
  std::map<std::string, TargetRemarks> byTarget;
  for (const PackedInstance &instance : instances) {
    if (instance.remarks.empty())
      continue;
    TargetRemarks &target = byTarget[instance.target];
    json list = json::array();
    for (const PackedRemark &remark : instance.remarks)
      list.push_back(target.remarks.number(
          json::array({remark.place, remark.pass, remark.isApplied, remark.optimisation, remark.text})));
    target.instances[instance.section] = target.lists.number(list);
  }
  std::vector<std::pair<std::string, std::string>> sections;
  for (const auto &[target, found] : byTarget)
    sections.emplace_back("remarks/" + target, json{{"format", 1},
                                                    {"instances", found.instances},
                                                    {"lists", found.lists.values},
                                                    {"remarks", found.remarks.values}}
                                                   .dump());
  return sections;
}

} // namespace kpkg::compiler
