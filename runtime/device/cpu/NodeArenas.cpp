// Runs threads for each NUMA node that stay on its processors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/NodeArenas.h"

#include <exception>
#include <map>
#include <mutex>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/task_scheduler_observer.h>
#include <sched.h>

namespace kpkg::cpu {

namespace {
/// Keeps threads on a node's processors while they are in its arena.
class Pin : public tbb::task_scheduler_observer {
public:
  Pin(tbb::task_arena &arena, const NumaNode &node) : task_scheduler_observer(arena) {
    CPU_ZERO(&wanted);
    for (int processor : node.processors)
      if (processor < CPU_SETSIZE)
        CPU_SET(processor, &wanted);
    observe(true);
  }
  ~Pin() override { observe(false); }

  // If the system refuses, only time is lost.
  void on_scheduler_entry(bool) override {
    std::vector<cpu_set_t> &sets = before();
    cpu_set_t &kept = sets.emplace_back();
    if (::sched_getaffinity(0, sizeof kept, &kept) != 0)
      kept = wanted;
    ::sched_setaffinity(0, sizeof wanted, &wanted);
  }
  void on_scheduler_exit(bool) override {
    std::vector<cpu_set_t> &sets = before();
    if (sets.empty()) // the thread entered before the observer
      return;
    ::sched_setaffinity(0, sizeof sets.back(), &sets.back());
    sets.pop_back();
  }

private:
  /// Returns this thread's processors before each arena that it is in.
  static std::vector<cpu_set_t> &before() {
    static thread_local std::vector<cpu_set_t> sets;
    return sets;
  }
  cpu_set_t wanted;
};
} // namespace

struct NodeArenas::Arena {
  /// If `isCallers`, the caller is one of the threads.
  Arena(const NumaNode &node, int threads, bool isCallers)
      : threads(threads), arena(threads, isCallers ? 1 : 0), pin(arena, node) {}
  int threads;
  tbb::task_arena arena;
  Pin pin;
};

NodeArenas::NodeArenas(NumaNodes nodes, int threads) : given(std::move(nodes)) {
  std::vector<int> shares = shareThreads(*given, threads);
  for (size_t i = 0; i < shares.size(); ++i)
    if (shares[i])
      arenas.push_back(std::make_unique<Arena>((*given)[i], shares[i], arenas.empty()));
}

NodeArenas::~NodeArenas() = default;

void NodeArenas::divide(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)> &body,
                        const std::function<bool()> &isCancelled) const {
  std::vector<tbb::task_group> groups(arenas.size());
  int64_t threads = 0, before = 0;
  for (const auto &each : arenas)
    threads += each->threads;
  for (size_t i = 0; i < arenas.size(); ++i) {
    int64_t begin = count * before / threads, end = count * (before + arenas[i]->threads) / threads;
    before += arenas[i]->threads;
    arenas[i]->arena.execute([&, begin, end] {
      groups[i].run([&, begin, end] {
        tbb::parallel_for(tbb::blocked_range<int64_t>(begin, end, size_t(grain)),
                          [&](const tbb::blocked_range<int64_t> &part) {
                            if (!isCancelled())
                              body(part.begin(), part.end());
                          });
      });
    });
  }
  std::exception_ptr failure; // of the first node; it is rethrown after the other nodes end
  for (size_t i = 0; i < arenas.size(); ++i)
    arenas[i]->arena.execute([&] {
      try {
        groups[i].wait();
      } catch (...) {
        failure = failure ? failure : std::current_exception();
      }
    });
  if (failure)
    std::rethrow_exception(failure);
}

std::shared_ptr<const NodeArenas> NodeArenas::find(int threads) {
  if (!hasNumaNodes() || threads < 2)
    return nullptr;
  NumaNodes nodes = numaNodes();
  // Never destroyed, because static destructors may make calls after oneTBB's own.
  static auto &lock = *new std::mutex;
  static auto &known = *new std::map<int, std::shared_ptr<const NodeArenas>>;
  std::lock_guard guard(lock);
  std::shared_ptr<const NodeArenas> &place = known[threads];
  if (!place || place->nodes() != nodes)
    place = std::make_shared<const NodeArenas>(nodes, threads);
  return place->arenas.size() < 2 ? nullptr : place;
}

} // namespace kpkg::cpu
