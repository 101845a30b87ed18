// Caches planned calls that a thread used recently, without a lock.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_CALLCACHE_H
#define KPKG_PACKAGE_CALLCACHE_H

#include "runtime/package/PlannedCall.h"

#include <memory>
#include <vector>

namespace kpkg::package {

uint64_t hashKey(uint64_t op, const std::vector<uint64_t> &key);

/// Keeps a planned call alive during a call, without touching reference counts that other threads share.
class PinnedCall {
public:
  PinnedCall() = default;
  /// Pins a call in the thread's cache.
  PinnedCall(const PlannedCall *call, uint32_t *pins) : call(call), pins(pins) { ++*pins; }
  /// Owns a call that is not cached.
  explicit PinnedCall(std::shared_ptr<const PlannedCall> owned) : call(owned.get()), owned(std::move(owned)) {}
  PinnedCall(PinnedCall &&other) noexcept
      : call(std::exchange(other.call, nullptr)), pins(std::exchange(other.pins, nullptr)),
        owned(std::move(other.owned)) {}
  PinnedCall &operator=(PinnedCall &&) = delete;
  ~PinnedCall() {
    if (pins)
      --*pins;
  }
  const PlannedCall *operator->() const { return call; }
  const PlannedCall &operator*() const { return *call; }
  explicit operator bool() const { return call; }

private:
  const PlannedCall *call = nullptr;
  uint32_t *pins = nullptr;
  std::shared_ptr<const PlannedCall> owned;
};

/// Returns an empty result if this thread has not used the signature recently.
PinnedCall findPlannedCall(uint64_t op, uint64_t hash, const std::vector<uint64_t> &key);
PinnedCall keepPlannedCall(std::shared_ptr<const PlannedCall> call);

/// Called when an op is destroyed. Each thread empties its cache at its next call.
void forgetPlannedCalls();

} // namespace kpkg::package
#endif
