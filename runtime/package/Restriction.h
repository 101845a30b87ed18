// Parses which instances a caller allows by kpkg_registry_restrict.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_RESTRICTION_H
#define KPKG_PACKAGE_RESTRICTION_H

#include "runtime/package/Tables.h"

#include <kpkg/result.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kpkg::package {

/// An empty field allows everything.
struct Restriction {
  /// Unique in the process: part of the key of planned calls.
  uint64_t id = 0;
  /// The allowed values by parameter, as in instance labels. Kernels without the parameter are not affected.
  using Values = std::map<std::string, std::vector<std::string>>;
  Values params;
  /// The allowed values for single kernels.
  std::map<std::string, Values> kernels;
  /// By kernel, the label of its only allowed instance.
  std::map<std::string, std::string> instances;
  std::string target;
  std::string variant;
  /// Replaces an empty argument `precision` of the op.
  std::string precision;
  /// Flags that instances must have, besides those of KPKG_REQUIRE.
  std::vector<std::string> require;
  /// Threads of a CTA; only for GPU instances.
  std::vector<uint32_t> threads;

  /// Returns why the instance is not allowed; empty if it is.
  std::string refuse(const Kernel &kernel, const Instance &instance) const;
};

/// Parses a restriction. KPKG_ERROR_USE describes errors of the text.
Result<std::shared_ptr<const Restriction>> readRestriction(const std::string &json);

} // namespace kpkg::package
#endif
