// Threads for each memory node, which stay on its processors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CPU_NODEARENAS_H
#define KPKG_DEVICE_CPU_NODEARENAS_H

#include "runtime/device/cpu/Numa.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kpkg::cpu {

/// The threads of large calls on a machine with several nodes. A part of a range that is divided by them goes to the
/// same node each time. So memory that a launch writes first is on the node whose threads read it in the next one, and
/// so is what a thread keeps, such as packed factors of products.
class NodeArenas {
public:
  NodeArenas(NumaNodes nodes, int threads);
  ~NodeArenas();

  /// Calls body(begin, end) over parts of [0, count), each at least `grain` long. A thread of the caller's helps, and
  /// is on its own processors again at the end. Where `isCancelled` becomes true, parts that have not begun are left
  /// out.
  void divide(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)> &body,
              const std::function<bool()> &isCancelled) const;

  const NumaNodes &nodes() const { return given; }

  /// For so many threads on the nodes of now; null where there are fewer than two nodes with a thread.
  static std::shared_ptr<const NodeArenas> find(int threads);

private:
  struct Arena;
  NumaNodes given;
  std::vector<std::unique_ptr<Arena>> arenas;
};

} // namespace kpkg::cpu
#endif
