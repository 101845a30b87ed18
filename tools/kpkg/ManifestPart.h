// A part of a manifest, which may have any form.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace kpkg::command {

/// Runtimes read only what they need of a manifest, so that a file which opens may lack anything else, or have it in
/// another form. What is not there as expected reads as nothing; nothing throws. Refers to the JSON that it was made
/// of.
class ManifestPart {
public:
  explicit ManifestPart(const nlohmann::json &value) : value(&value) {}

  bool isThere() const { return !value->is_null(); }
  /// A member of an object.
  ManifestPart operator[](const char *key) const;
  /// An item of a list.
  ManifestPart operator[](size_t index) const;
  /// Of a list; none of anything else.
  std::vector<ManifestPart> items() const;
  /// Of an object, in the order of their names, which are safe to print.
  std::vector<std::pair<std::string, ManifestPart>> members() const;
  /// The text without what would steer a terminal; what is no text in JSON's form, and nothing as `absent`.
  std::string text(const std::string &absent = "?") const;
  /// A number that is not negative; else 0.
  uint64_t number() const;
  bool isTrue() const { return value->is_boolean() && value->get<bool>(); }

private:
  const nlohmann::json *value;
};

} // namespace kpkg::command
