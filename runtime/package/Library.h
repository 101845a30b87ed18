// Declares an open package: its file, its tables, and its loaded parts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_LIBRARY_H
#define KPKG_PACKAGE_LIBRARY_H

#include "runtime/device/cpu/HostObject.h"
#include "runtime/format/Reader.h"
#include "runtime/package/Tables.h"

#include <kpkg/kernel_abi.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::package {

class PackagedOp;

/// The policy for accepting packages and sections.
struct Trust {
  kpkg_trust level = KPKG_TRUST_DIGEST;
  std::vector<format::PublicKey> keys;
};

/// A kernel as the driver knows it.
struct GpuFunction {
  void *handle = nullptr;
  /// Resident clusters on the device, for persistent kernels with clusters; 0 for others.
  int64_t residentClusters = 0;
};

/// Shared by all its users. Loaded parts live as long as the library. Any number of threads may use it.
class Library : public std::enable_shared_from_this<Library> {
public:
  static Result<std::shared_ptr<Library>> open(Result<format::Reader> reader, Trust trust);
  ~Library();

  const std::string &name() const { return reader.name(); }
  const Tables &tables() const { return *entries; }
  const std::string &manifestText() const { return manifest; }
  const std::vector<std::unique_ptr<PackagedOp>> &ops() const { return packagedOps; }

  /// Returns a section's contents, checked by the trust policy. Valid while the library lives.
  Result<std::string_view> section(std::string_view name) const;
  /// Returns the size of an existing section before compression.
  uint64_t sectionBytes(std::string_view name) const { return reader.find(name)->size; }
  /// Returns the instance's entry point. Loads its host object on first use.
  Result<KpkgCpuKernel> kernel(const Instance &instance) const;
  /// Returns the instance's function in the primary context of a GPU. Loads its section on first use, which is refused
  /// while `stream` is captured into a graph.
  Result<GpuFunction> gpuFunction(const Instance &instance, int32_t device, void *stream) const;
  /// Returns the `$tiles` entry of a persistent kernel's instance.
  Result<KpkgCpuTileCount> tileCount(const Instance &instance) const;

  /// Checks the digests of all sections, and loads all plans and the objects that this machine can run.
  Status verify() const;
  /// Loads all plans and the objects of the best targets that this machine can run, and starts the worker threads.
  Status prewarmCpu() const;
  /// Loads all plans and everything that a GPU can run. Later calls load nothing there.
  Status prewarmGpu(int32_t device) const;

private:
  Library(format::Reader reader, Trust trust, std::shared_ptr<const Tables> tables);
  Result<const void *> symbol(const Instance &instance, const std::string &name) const;
  Status loadAll() const;

  format::Reader reader;
  Trust trust;
  std::shared_ptr<const Tables> entries;
  std::string manifest;
  std::vector<std::unique_ptr<PackagedOp>> packagedOps;

  /// Guards the following members. Entries are never removed, so references stay valid.
  mutable std::mutex lock;
  mutable std::map<std::string, format::Contents, std::less<>> contents;
  mutable std::map<std::string, std::unique_ptr<cpu::HostObject>, std::less<>> objects;
  mutable std::map<std::pair<const Instance *, int32_t>, GpuFunction> gpuFunctions;
  mutable std::map<std::pair<std::string, int32_t>, void *> gpuImages; ///< by section and device
};

} // namespace kpkg::package
#endif
