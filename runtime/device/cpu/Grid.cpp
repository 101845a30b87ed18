// Runs the blocks of a CPU kernel, as tasks on all cores or, if they are few, on the caller's thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/Grid.h"
#include "runtime/device/cpu/CpuTarget.h"
#include "runtime/device/cpu/NodeArenas.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <pthread.h>

namespace kpkg::cpu {

/// Waking workers costs some 10 us, in which one core moves about this much from and to memory.
static constexpr uint64_t inlineBytes = 192 << 10;
/// Parts per thread: enough to balance unequal blocks, few enough that a part takes longer than the overhead of its
/// task.
static constexpr int64_t partsPerThread = 8;

static std::atomic<bool> forked = false;

/// One for each number of threads, because threads of different calls may want different numbers. Never destroyed,
/// because static destructors may make calls after oneTBB's own.
static tbb::task_arena &arenaOf(int threads) {
  static std::array<std::atomic<tbb::task_arena *>, mostThreads + 1> arenas;
  [[maybe_unused]] static const int watched =
      ::pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
  std::atomic<tbb::task_arena *> &place = arenas[size_t(threads)];
  tbb::task_arena *found = place.load(std::memory_order_acquire);
  if (found)
    return *found;
  auto created = std::make_unique<tbb::task_arena>(threads);
  if (place.compare_exchange_strong(found, created.get(), std::memory_order_acq_rel))
    found = created.release();
  return *found;
}

/// Returns the threads for a call on this thread.
static int usableThreads() { return forked.load(std::memory_order_relaxed) ? 1 : threadCount(); }

namespace {
/// Grow-only memory of one thread.
class Scratch {
public:
  ~Scratch() { std::free(memory); }
  void *get(size_t bytes) {
    if (bytes > size) {
      std::free(memory);
      size = 0;
      size_t rounded = (bytes + 4095) / 4096 * 4096;
      memory = std::aligned_alloc(4096, rounded);
      if (!memory)
        throw std::bad_alloc();
      size = rounded;
    }
    return bytes ? memory : nullptr;
  }

private:
  void *memory = nullptr;
  size_t size = 0;
};
} // namespace

static int32_t runPart(const Launch &launch, int64_t begin, int64_t end) {
  static thread_local Scratch scratch;
  KpkgCpuCall call = launch.call;
  call.scratch = scratch.get(launch.scratchBytes);
  return launch.kernel(&call, begin, end);
}

int32_t run(const Launch &launch) {
  int64_t count = launch.call.grid[0] * launch.call.grid[1] * launch.call.grid[2];
  if (count <= 0)
    return 0;
  if (count == 1 || launch.workBytes <= inlineBytes)
    return runPart(launch, 0, count);
  const int threads = usableThreads();
  if (threads == 1)
    return runPart(launch, 0, count);
  int64_t grain = std::max<int64_t>(1, count / (threads * partsPerThread));
  std::atomic<int32_t> failed = 0;
  if (auto nodes = NodeArenas::find(threads)) {
    nodes->divide(
        count, grain,
        [&](int64_t begin, int64_t end) {
          if (int32_t code = runPart(launch, begin, end))
            failed.store(code, std::memory_order_relaxed);
        },
        [&] { return failed.load(std::memory_order_relaxed) != 0; });
    return failed.load(std::memory_order_relaxed);
  }
  arenaOf(threads).execute([&] {
    tbb::task_group_context context;
    tbb::parallel_for(
        tbb::blocked_range<int64_t>(0, count, size_t(grain)),
        [&](const tbb::blocked_range<int64_t> &part) {
          if (int32_t code = runPart(launch, part.begin(), part.end())) {
            failed.store(code, std::memory_order_relaxed);
            context.cancel_group_execution();
          }
        },
        tbb::auto_partitioner(), context);
  });
  return failed.load(std::memory_order_relaxed);
}

void parallelFor(int64_t count, int64_t grain, void (*body)(void *, int64_t, int64_t), void *context) {
  const int threads = count <= grain ? 1 : usableThreads();
  if (threads == 1) {
    if (count > 0)
      body(context, 0, count);
    return;
  }
  if (auto nodes = NodeArenas::find(threads)) {
    nodes->divide(count, grain, [&](int64_t begin, int64_t end) { body(context, begin, end); }, [] { return false; });
    return;
  }
  arenaOf(threads).execute([&] {
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, count, size_t(grain)),
                      [&](const tbb::blocked_range<int64_t> &part) { body(context, part.begin(), part.end()); });
  });
}

void startThreads() {
  int threads = usableThreads();
  if (auto nodes = NodeArenas::find(threads))
    nodes->divide(threads, 1, [](int64_t, int64_t) {}, [] { return false; });
  else if (threads > 1)
    arenaOf(threads).execute([] {});
}

} // namespace kpkg::cpu
