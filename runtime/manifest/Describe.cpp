// Describes records of the manifest to people, by the labels of their fields.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/manifest/Describe.h"
#include "runtime/manifest/Schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kpkg::manifest {

template <class Record> static std::vector<std::string> describeRecord(const Record &record) {
  std::vector<std::string> parts;
  const Record initial;
  Schema<Record>::visit([&](const auto &field) {
    const auto &member = record.*field.member;
    using Type = std::remove_cvref_t<decltype(member)>;
    std::string_view label = field.label, otherwise;
    if (size_t bar = label.find('|'); bar != label.npos)
      otherwise = label.substr(bar + 1), label = label.substr(0, bar);
    if (member == initial.*field.member) {
      if (!otherwise.empty())
        parts.emplace_back(otherwise);
    } else if (!label.empty()) {
      std::string text(label);
      if (size_t at = text.find("{}"); at != text.npos) {
        if constexpr (std::is_same_v<Type, std::string>)
          text.replace(at, 2, member);
        else if constexpr (isList<Type>)
          text.replace(at, 2, std::to_string(member.size()));
        else if constexpr (std::is_integral_v<Type>)
          text.replace(at, 2, std::to_string(member));
      }
      parts.push_back(std::move(text));
    } else if constexpr (isList<Type>)
      if constexpr (IsRecord<typename Type::value_type>)
        for (const auto &item : member)
          for (std::string &part : describeRecord(item))
            parts.push_back(std::move(part));
  });
  return parts;
}

std::vector<std::string> describe(const Launch &launch) {
  std::vector<std::string> parts = describeRecord(launch);
  if (launch.registers == 0) // no ptxas has counted them, so that no spills are no finding
    std::ranges::replace(parts, "no spills", "spills unknown without ptxas");
  return parts;
}
std::vector<std::string> describe(const Fact &fact) { return describeRecord(fact); }

nlohmann::ordered_json figures(const Launch &launch) {
  nlohmann::ordered_json record;
  Schema<Launch>::visit([&](const auto &field) {
    const auto &member = launch.*field.member;
    nlohmann::ordered_json &figure = record[std::string(field.key)];
    if constexpr (isList<std::remove_cvref_t<decltype(member)>>)
      figure = member.size();
    else
      figure = member;
  });
  return record;
}

} // namespace kpkg::manifest
