// The memory nodes of this machine and their processors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CPU_NUMA_H
#define KPKG_DEVICE_CPU_NUMA_H

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::cpu {

/// Memory and the processors next to it.
struct NumaNode {
  int number = 0;
  std::vector<int> processors; ///< ascending; at least one
  bool operator==(const NumaNode &) const = default;
};

/// The numbers in a list as Linux writes it, "0-3,8"; empty where it is none.
std::vector<int> readNumbers(std::string_view list);

/// The nodes that `folder` describes as Linux does in /sys/devices/system/node, as far as `allowed` has their
/// processors. Nodes without any are left out; without a description there are none.
std::vector<NumaNode> readNumaNodes(const std::string &folder, const std::vector<int> &allowed);

/// Processors that this process may use.
std::vector<int> allowedProcessors();

/// Threads for each node when there are `threads` in all: in proportion to the processors of the nodes.
std::vector<int> shareThreads(const std::vector<NumaNode> &nodes, int threads);

/// Whether there are at least two. Cheap enough for every call.
bool hasNumaNodes();

using NumaNodes = std::shared_ptr<const std::vector<NumaNode>>;

/// Of this machine, read once, or what useNumaNodes said last.
NumaNodes numaNodes();
/// Large calls that begin later run on these nodes; fewer than two: threads run anywhere. For tests.
void useNumaNodes(std::vector<NumaNode> nodes);

} // namespace kpkg::cpu
#endif
