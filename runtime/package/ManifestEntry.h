// Reads entries of a manifest, with their places for messages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kpkg::package {

using nlohmann::json;

/// An error in a manifest, which readTables() catches.
struct Refusal {
  std::string why;
};

/// An object of the manifest with its place for messages.
class Entry {
public:
  Entry(const json &value, std::string where) : value(value), where(std::move(where)) {
    if (!value.is_object())
      refuse("is no object");
  }
  [[noreturn]] void refuse(const std::string &what) const { throw Refusal{where + " " + what}; }
  void rename(std::string place) { where = std::move(place); }

  const json *find(const char *key) const {
    auto found = value.find(key);
    return found == value.end() || found->is_null() ? nullptr : &*found;
  }
  const json &at(const char *key) const {
    const json *found = find(key);
    if (!found)
      refuse(std::string("has no `") + key + "`");
    return *found;
  }
  std::string text(const char *key) const {
    const json &field = at(key);
    if (!field.is_string())
      refuse(std::string("`") + key + "` is no string");
    return field.get<std::string>();
  }
  std::string textOr(const char *key, std::string otherwise) const { return find(key) ? text(key) : otherwise; }
  bool flag(const char *key, bool otherwise) const {
    const json *field = find(key);
    if (!field)
      return otherwise;
    if (!field->is_boolean())
      refuse(std::string("`") + key + "` is no bool");
    return field->get<bool>();
  }
  int64_t integer(const char *key, int64_t least, int64_t greatest) const {
    const json &field = at(key);
    if (!field.is_number_integer() || (field.is_number_unsigned() && field.get<uint64_t>() > uint64_t(greatest)) ||
        field.get<int64_t>() < least || field.get<int64_t>() > greatest)
      refuse(std::string("`") + key + "` is no integer from " + std::to_string(least) + " to " +
             std::to_string(greatest));
    return field.get<int64_t>();
  }
  /// Returns an empty list if absent.
  const json &list(const char *key) const {
    static const json none = json::array();
    const json *field = find(key);
    if (!field)
      return none;
    if (!field->is_array())
      refuse(std::string("`") + key + "` is no list");
    return *field;
  }
  std::vector<std::string> texts(const char *key) const {
    std::vector<std::string> result;
    for (const json &item : list(key)) {
      if (!item.is_string())
        refuse(std::string("`") + key + "` holds something that is no string");
      result.push_back(item.get<std::string>());
    }
    return result;
  }

  const json &value;
  std::string where;
};

inline std::string place(const char *table, size_t index) {
  return std::string(table) + "[" + std::to_string(index) + "]";
}

} // namespace kpkg::package
