// Declares an open package and its ops: its file, its tables, its plans, and its loaded parts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_LIBRARY_H
#define KPKG_PACKAGE_LIBRARY_H

#include "runtime/device/Device.h"
#include "runtime/format/Reader.h"
#include "runtime/package/ForkSafeMutex.h"
#include "runtime/package/PlannedCall.h"
#include "runtime/package/Refusals.h"
#include "runtime/package/Tables.h"
#include "runtime/plan/Program.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kpkg::package {

/// One op of a package. Belongs to its library. Any number of threads may use it.
class PackagedOp {
public:
  PackagedOp(const Library &library, const OpEntry &entry);
  ~PackagedOp();

  const OpEntry &entry() const { return description; }
  const Library &library() const { return owner; }
  /// Unique in the process, also after an op is destroyed.
  uint64_t id() const { return number; }

  /// Returns the bytecode for calls on devices with these plans. It is loaded and verified on first use.
  Result<const plan::Program *> program(device::PlanKind kind) const;
  Result<const plan::Program *> shapeProgram(device::PlanKind kind) const;
  /// Loads the bytecode of all devices.
  Status loadPrograms() const;

  /// Returns the planned call for the frame's arguments and key, from the op's cache or newly planned; `made` tells
  /// which.
  Result<std::shared_ptr<const PlannedCall>> plan(Frame &frame, uint64_t hash, bool &made) const;

  /// Returns how often each instance ran, in the order of first use.
  std::vector<std::pair<const Instance *, uint64_t>> uses() const;

private:
  /// A plan section, loaded once. `loaded` is read without the lock.
  struct Plan {
    std::atomic<const plan::Program *> loaded = nullptr;
    std::optional<plan::Program> program;
  };
  Result<const plan::Program *> load(Plan &plan, const std::string &section) const;
  static InstanceUse *counterOf(void *op, const Instance &instance);

  const Library &owner;
  const OpEntry &description;
  uint64_t number;

  mutable ForkSafeMutex lock;
  mutable Plan full, shape, gpuFull, gpuShape;
  mutable std::deque<InstanceUse> counters;
  /// Bounded: a new signature replaces the oldest one.
  mutable std::unordered_multimap<uint64_t, std::shared_ptr<const PlannedCall>> calls;
  mutable std::deque<std::shared_ptr<const PlannedCall>> order;
};

/// Converts a plan's error to the runtime's.
Error toError(const plan::Error &error, const OpEntry &op);

/// The policy for accepting packages and sections.
struct Trust {
  kpkg_trust level = KPKG_TRUST_DIGEST;
  std::vector<format::PublicKey> keys;
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
  /// Returns the instance's kernel on a device. Loads its section on first use, which fails while `stream` is captured
  /// into a graph. KPKG_ERROR_UNSUPPORTED: the device refuses the code; refusals() knows it from then on.
  Result<const device::Kernel *> kernel(const Instance &instance, device::Device &device, device::Stream stream) const;
  /// Returns the instances that devices have refused.
  const Refusals &refusals() const { return refused; }

  /// Checks the digests of all sections, and loads all plans and the objects that this machine can run.
  Status verify() const;
  /// Loads all plans and everything that the device can run. Later calls load nothing there. Code that the device
  /// refuses is skipped.
  Status prewarm(device::Device &device) const;

private:
  Library(format::Reader reader, Trust trust, std::shared_ptr<const Tables> tables);
  /// Does the work of kernel(), and sets `hasSection` once the section is loaded.
  Result<const device::Kernel *> load(const Instance &instance, device::Device &device, device::Stream stream,
                                      std::string_view image, bool &hasSection) const;
  Status loadAll(device::Device &device) const;

  format::Reader reader;
  Trust trust;
  std::shared_ptr<const Tables> entries;
  std::string manifest;
  std::vector<std::unique_ptr<PackagedOp>> packagedOps;

  /// Guards the following members. Entries are never removed, so references stay valid.
  mutable ForkSafeMutex lock;
  mutable std::map<std::string, format::Contents, std::less<>> contents;
  mutable std::map<std::pair<std::string, device::Device *>, std::unique_ptr<device::Executable>>
      executables; ///< by section
  mutable std::map<std::pair<const Instance *, device::Device *>, std::unique_ptr<const device::Kernel>> kernels;
  mutable Refusals refused;
};

} // namespace kpkg::package
#endif
