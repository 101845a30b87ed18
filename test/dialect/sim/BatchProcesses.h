// Works through seeds in batches, each in a process of its own: code that crashes costs one batch and is found.
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
  int64_t size; ///< seeds of one process
  int jobs;     ///< processes at a time
};

/// Calls `work(first seed, count)` in child processes until all seeds are done. After a batch that a signal ended its
/// seeds are done one by one; `crashed(seed, signal's name)` is told, in this process, which of them ends so again.
void runBatches(const Batches &batches, const std::function<void(uint64_t, int64_t)> &work,
                const std::function<void(uint64_t, const std::string &)> &crashed);

/// A T in memory that this process shares with its children.
template <typename T> T &sharedWithChildren() {
  void *memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  return *new (memory) T();
}
} // namespace kpkg::sim::test
