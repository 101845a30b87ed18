// Reads a part of a manifest that may have any form.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace kpkg::command {

/// A part of a manifest that never throws. Runtimes only read the parts of a manifest that they need. The rest of a
/// valid file may be missing or have another form, which reads as nothing here. Refers to the JSON from which it was
/// created.
class ManifestPart {
public:
  explicit ManifestPart(const nlohmann::json &value) : value(&value) {}

  bool isThere() const { return !value->is_null(); }
  /// Returns a member of an object.
  ManifestPart operator[](const char *key) const;
  /// Returns an item of a list.
  ManifestPart operator[](size_t index) const;
  /// Returns the items of a list; none for other values.
  std::vector<ManifestPart> items() const;
  /// Returns the members of an object in the order of their names, which are safe to print.
  std::vector<std::pair<std::string, ManifestPart>> members() const;
  /// Returns the text without terminal control sequences. Other values are converted to JSON text, and nothing to
  /// `absent`.
  std::string text(const std::string &absent = "?") const;
  /// Returns a number that is not negative; else 0.
  uint64_t number() const;
  bool isTrue() const { return value->is_boolean() && value->get<bool>(); }

private:
  const nlohmann::json *value;
};

} // namespace kpkg::command
