// Runs threads for each NUMA node that stay on its processors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CPU_NODEARENAS_H
#define KPKG_DEVICE_CPU_NODEARENAS_H

#include "runtime/device/cpu/Numa.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kpkg::cpu {

/// The threads of large calls on a machine with several NUMA nodes. Each division of a range sends the same part to the
/// same node. Memory that a launch writes first is thus on the node whose threads read it in the next launch. So is
/// memory that threads keep, such as packed operands of products.
class NodeArenas {
public:
  NodeArenas(NumaNodes nodes, int threads);
  ~NodeArenas();

  /// Calls body(begin, end) for parts of [0, count), each at least `grain` long. The calling thread helps, and returns
  /// to its own processors. Once `isCancelled` returns true, remaining parts are skipped.
  void divide(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)> &body,
              const std::function<bool()> &isCancelled) const;

  const NumaNodes &nodes() const { return given; }

  /// Returns the arenas of `threads` threads on the current nodes; null if fewer than two nodes have a thread.
  static std::shared_ptr<const NodeArenas> find(int threads);

private:
  struct Arena;
  NumaNodes given;
  std::vector<std::unique_ptr<Arena>> arenas;
};

} // namespace kpkg::cpu
#endif
