// Runs the blocks of a CPU kernel, as tasks on all cores or, when they are few, on the caller's thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/Grid.h"
#include "runtime/device/cpu/CpuTarget.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <pthread.h>

namespace kpkg::cpu {

/// Waking workers costs some 10 us. One core moves about this much in that time.
static constexpr uint64_t inlineBytes = 64 << 10;
/// Parts per thread: enough to even out unequal blocks, few enough that a part's cost hides a task's.
static constexpr int64_t partsPerThread = 8;

static std::atomic<bool> forked = false;

/// Never destroyed: calls may come from static destructors, after oneTBB's own.
static tbb::task_arena &arena() {
  static tbb::task_arena *const created = [] {
    ::pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
    return new tbb::task_arena(threadCount());
  }();
  return *created;
}

static bool alone() { return threadCount() == 1 || forked.load(std::memory_order_relaxed); }

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
  if (count == 1 || launch.workBytes < inlineBytes || alone())
    return runPart(launch, 0, count);
  int64_t grain = std::max<int64_t>(1, count / (threadCount() * partsPerThread));
  std::atomic<int32_t> failed = 0;
  arena().execute([&] {
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
  if (count <= grain || alone()) {
    if (count > 0)
      body(context, 0, count);
    return;
  }
  arena().execute([&] {
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, count, size_t(grain)),
                      [&](const tbb::blocked_range<int64_t> &part) { body(context, part.begin(), part.end()); });
  });
}

void startThreads() {
  if (!alone())
    arena().execute([] {});
}

} // namespace kpkg::cpu
