// Which instances a caller allows: what kpkg_registry_restrict says, read.
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
  /// Never the same for two restrictions of a process: part of the key of planned calls.
  uint64_t id = 0;
  /// By parameter, the values that are allowed, as in instance labels. A kernel without the parameter is not concerned.
  using Values = std::map<std::string, std::vector<std::string>>;
  Values params;
  /// By kernel: the same for that kernel alone.
  std::map<std::string, Values> kernels;
  /// By kernel: the label of the only instance of it that is allowed.
  std::map<std::string, std::string> instances;
  std::string target;
  std::string variant;
  /// Stands for an empty argument `precision` of the op.
  std::string precision;
  /// Threads of a CTA; only for GPU instances.
  std::vector<uint32_t> threads;

  /// Why the instance is not allowed; empty when it is.
  std::string refuse(const Kernel &kernel, const Instance &instance) const;
};

/// KPKG_ERROR_USE names what is wrong with the text.
Result<std::shared_ptr<const Restriction>> readRestriction(const std::string &json);

} // namespace kpkg::package
#endif
