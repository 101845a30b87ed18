// Changed copies of packages: fewer sections or targets, or the instances of several packages.
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

/// A package that a runtime opens, so that its tables have the form that the format asks for.
struct OpenedPackage {
  format::WholeFile file;
  format::Reader reader;
  Library library;

  static Result<OpenedPackage> open(const std::string &path);
  /// Of the instances.
  std::set<std::string> targets() const;
  bool isSigned() const;
};

/// A table of a manifest; empty where the manifest has none, which runtimes take for the same.
const nlohmann::json &tableOf(const nlohmann::json &manifest, const char *name);

/// "softmax_rows[float32,1024] unit x86-64-v3": kernel, values of the parameters, variant and target.
std::string labelOf(const nlohmann::json &manifest, const nlohmann::json &instance);

/// Without sections of these kinds, and with the instances, code and rows of the tuning table for these targets alone;
/// an empty set keeps all targets. A target that the package does not have is an error.
Result<std::string> reduced(const OpenedPackage &package, const std::set<std::string> &kinds,
                            const std::set<std::string> &targets);

/// The instances, code and tuning rows of all. Kernels and ops, and sections of one name, must be equal.
Result<std::string> merged(const std::vector<OpenedPackage> &packages);

/// Opens what was made, which shows that it is whole, then writes it, and says so on stdout. `wasSigned` adds a note
/// that signatures are gone.
ExitCode writePackage(const std::string &path, const std::string &bytes, bool wasSigned);

} // namespace kpkg::command::edit
