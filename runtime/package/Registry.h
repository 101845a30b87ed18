// Declares libraries and fallbacks by op name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_REGISTRY_H
#define KPKG_PACKAGE_REGISTRY_H

#include "runtime/package/CallableOp.h"
#include "runtime/package/ForkSafeMutex.h"
#include "runtime/package/Library.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kpkg::package {

/// Ops by name, in the order of their addition.
class OpTable {
public:
  kpkg_op *add(const PackagedOp &op, const FallbackPolicy *policy);
  /// Adds an op without a package. No op of that name may exist.
  kpkg_op *add(OpEntry entry, const FallbackPolicy *policy);
  /// Finds an op by its full name, or without the namespace if that is unambiguous.
  Result<kpkg_op *> find(const std::string &name, const std::string &where) const;
  kpkg_op *findExact(const std::string &name) const;
  size_t size() const { return ops.size(); }
  kpkg_op *at(size_t index) const { return index < ops.size() ? ops[index].get() : nullptr; }

private:
  std::vector<std::unique_ptr<kpkg_op>> ops;
};

/// Any number of threads may use it.
class Registry {
public:
  /// Adds all ops, or none if an op's schema differs from a known one.
  Status add(std::shared_ptr<const Library> library);
  Status addPath(const std::string &path);
  /// Sets the fallback of `op`, a name or a schema. With a namespace, it may be an op that no package has yet. Null
  /// removes it. On failure, `fallback` is not taken over.
  Status setFallback(const std::string &op, std::shared_ptr<const Fallback> fallback);
  void setPolicy(kpkg_policy chosen) { policy.policy.store(chosen, std::memory_order_relaxed); }
  /// Returns an op of a package, or with a fallback.
  Result<kpkg_op *> op(const std::string &name) const;
  size_t size() const;
  kpkg_op *at(size_t index) const;

private:
  Result<kpkg_op *> findOrDeclare(const std::string &op);

  mutable ForkSafeMutex lock;
  std::vector<std::shared_ptr<const Library>> libraries;
  FallbackPolicy policy;
  OpTable ops;
};

/// Opens a file with the trust that `options` (may be null) and the environment require.
Result<std::shared_ptr<Library>> openLibrary(Result<format::Reader> reader, const kpkg_open_options *options);

} // namespace kpkg::package
#endif
