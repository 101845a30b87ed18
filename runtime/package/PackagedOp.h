// Declares an op of one package: its plan, and its planned calls by signature.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_PACKAGEDOP_H
#define KPKG_PACKAGE_PACKAGEDOP_H

#include "runtime/package/PlannedCall.h"
#include "runtime/plan/Program.h"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace kpkg::package {

/// Belongs to its library. Any number of threads may use it.
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

  mutable std::mutex lock;
  mutable Plan full, shape, gpuFull, gpuShape;
  mutable std::deque<InstanceUse> counters;
  /// Bounded: a new signature replaces the oldest one.
  mutable std::unordered_multimap<uint64_t, std::shared_ptr<const PlannedCall>> calls;
  mutable std::deque<std::shared_ptr<const PlannedCall>> order;
};

/// Converts a plan's error to the runtime's.
Error toError(const plan::Error &error, const OpEntry &op);

} // namespace kpkg::package
#endif
