// Writes records of the manifest as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_MANIFEST_WRITE_H
#define KPKG_MANIFEST_WRITE_H

#include "runtime/manifest/Schema.h"

#include <nlohmann/json.hpp>

#include <set>

namespace kpkg::manifest {

/// The essential fields that were written, as in "launch.threads": the contents of `requires`.
using Requirements = std::set<std::string>;

nlohmann::json toJson(const Value &value);
nlohmann::json toJson(const CostFactor &factor);
nlohmann::json toJson(const BackwardArgument &argument);

template <class Type> nlohmann::json write(const Type &value, Requirements &requirements) {
  using nlohmann::json;
  if constexpr (IsRecord<Type>) {
    const Type initial;
    json record = json::object();
    Schema<Type>::visit([&](const auto &field) {
      const auto &member = value.*field.member;
      bool isInitial = member == initial.*field.member;
      if (isInitial && !field.presence.isWritten)
        return;
      record[std::string(field.key)] = isInitial && field.presence.isNullable ? json() : write(member, requirements);
      if (field.presence.isEssential)
        requirements.insert(std::string(Schema<Type>::name) + "." + std::string(field.key));
    });
    return record;
  } else if constexpr (isOptional<Type>)
    return value ? write(*value, requirements) : json();
  else if constexpr (isList<Type>) {
    json list = json::array();
    for (const auto &item : value)
      list.push_back(write(item, requirements));
    return list;
  } else if constexpr (IsWord<Type>)
    return std::string(wordOf(value).spelling);
  else if constexpr (requires { toJson(value); })
    return toJson(value);
  else
    return value;
}

/// Writes a record; essential fields in it must not matter.
template <class Record> nlohmann::json write(const Record &record) {
  Requirements requirements;
  return write(record, requirements);
}

/// Writes a whole manifest, with the essential fields of all its records in `requires`.
nlohmann::json writeManifest(Manifest manifest);

} // namespace kpkg::manifest
#endif
