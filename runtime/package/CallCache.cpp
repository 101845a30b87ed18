// Caches planned calls that a thread used recently, without a lock.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/CallCache.h"

#include <array>
#include <atomic>

namespace kpkg::package {

namespace {
struct Slot {
  std::shared_ptr<const PlannedCall> call;
  /// Running calls of this thread that use it. More than one only for nested calls.
  uint32_t pins = 0;
};

/// Direct-mapped: a collision costs one lookup in the op's own table.
struct ThreadCache {
  std::array<Slot, 256> slots;
  uint64_t generation = 0;
};
} // namespace

static std::atomic<uint64_t> generation = 0;

static ThreadCache &threadCache() {
  static thread_local ThreadCache cache;
  uint64_t now = generation.load(std::memory_order_relaxed);
  if (cache.generation != now) {
    for (Slot &slot : cache.slots)
      if (!slot.pins)
        slot.call.reset();
    cache.generation = now;
  }
  return cache;
}

uint64_t hashKey(uint64_t op, const std::vector<uint64_t> &key) {
  uint64_t hash = op * 0x9e3779b97f4a7c15;
  for (uint64_t word : key) {
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash;
}

PinnedCall findPlannedCall(uint64_t op, uint64_t hash, const std::vector<uint64_t> &key) {
  ThreadCache &cache = threadCache();
  Slot &slot = cache.slots[hash % cache.slots.size()];
  if (slot.call && slot.call->hash == hash && slot.call->op == op && slot.call->key == key)
    return PinnedCall(slot.call.get(), &slot.pins);
  return {};
}

PinnedCall keepPlannedCall(std::shared_ptr<const PlannedCall> call) {
  ThreadCache &cache = threadCache();
  Slot &slot = cache.slots[call->hash % cache.slots.size()];
  if (slot.pins)
    return PinnedCall(std::move(call));
  slot.call = std::move(call);
  return PinnedCall(slot.call.get(), &slot.pins);
}

void forgetPlannedCalls() { generation.fetch_add(1, std::memory_order_relaxed); }

} // namespace kpkg::package
