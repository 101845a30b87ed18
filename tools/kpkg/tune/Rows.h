// Reads and writes the rows of a package's tuning table, as text and in a package.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/result.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace kpkg::command::tune {

/// Choices by row, in the order of the file.
class Rows {
public:
  /// Returns the package's rows; none without a table.
  static Result<Rows> of(const std::string &package);

  /// Adds a row, or changes its choice.
  void set(const nlohmann::json &key, const nlohmann::json &choice) { choices[key.dump()] = {key, choice}; }
  size_t size() const { return choices.size(); }
  /// Returns the table's section.
  nlohmann::json table() const;

private:
  struct Row {
    nlohmann::json key, choice;
  };
  std::map<std::string, Row> choices;
};

/// Returns the bytes of `package` with this table instead of its own. Signatures are removed; `wasSigned` says whether
/// there was one.
Result<std::string> withTable(const std::string &package, const nlohmann::json &table, bool &wasSigned);

} // namespace kpkg::command::tune
