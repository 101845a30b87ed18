// Makes changed copies of packages: fewer sections or targets, or the instances of several packages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/format/Reader.h"
#include "runtime/format/WholeFile.h"
#include "tools/kpkg/Commands.h"
#include <kpkg/kpkg.hpp>
#include <set>
#include <string>
#include <vector>

namespace kpkg::command::edit {

/// A package that a runtime opens, so that its tables are valid.
struct OpenedPackage {
  format::WholeFile file;
  format::Reader reader;
  Library library;

  static Result<OpenedPackage> open(const std::string &path);
  /// Returns the targets of the instances.
  std::set<std::string> targets() const;
  bool isSigned() const;
};

/// Returns a table of a manifest; empty if the manifest has none, which is equivalent for runtimes.
const nlohmann::json &tableOf(const nlohmann::json &manifest, const char *name);

/// Returns "softmax_rows[float32,1024] unit x86-64-v3": kernel, values of the parameters, variant and target.
std::string labelOf(const nlohmann::json &manifest, const nlohmann::json &instance);

/// Returns the package without sections of these kinds, and with instances, code and tuning rows only for these
/// targets. An empty set keeps all targets. A target that the package does not have is an error.
Result<std::string> reduced(const OpenedPackage &package, const std::set<std::string> &kinds,
                            const std::set<std::string> &targets);

/// Returns the instances, code and tuning rows of all packages. Kernels, ops and sections of equal names must be equal.
Result<std::string> merged(const std::vector<OpenedPackage> &packages);

/// Opens the result, which checks it, then writes it and reports that on stdout. `wasSigned` adds a note that
/// signatures were removed.
ExitCode writePackage(const std::string &path, const std::string &bytes, bool wasSigned);

} // namespace kpkg::command::edit
