// Runs seeds in batches, each in its own process, so that a crash costs one batch and is attributed to a seed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <sys/mman.h>

namespace kpkg::sim::test {
struct Batches {
  uint64_t firstSeed;
  int64_t count;
  int64_t size; ///< The number of seeds in a process.
  int jobs;     ///< The number of concurrent processes.
};

/// Calls `work(first seed, count)` in child processes until all seeds are done. If a signal ends a batch, its seeds run
/// one by one. `crashed(seed, signal's name)` is then called, in this process, for each seed that ends by a signal
/// again.
void runBatches(const Batches &batches, const std::function<void(uint64_t, int64_t)> &work,
                const std::function<void(uint64_t, const std::string &)> &crashed);

/// Returns a T in memory that this process shares with its children.
template <typename T> T &sharedWithChildren() {
  void *memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  return *new (memory) T();
}
} // namespace kpkg::sim::test
