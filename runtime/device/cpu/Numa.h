// Finds the NUMA nodes of this machine and their processors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CPU_NUMA_H
#define KPKG_DEVICE_CPU_NUMA_H

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::cpu {

/// A NUMA node: memory and the processors near it.
struct NumaNode {
  int number = 0;
  std::vector<int> processors; ///< ascending; at least one
  bool operator==(const NumaNode &) const = default;
};

/// Parses a list in Linux' format, "0-3,8"; empty if it is invalid.
std::vector<int> readNumbers(std::string_view list);

/// Returns the NUMA nodes that `folder` describes in the format of /sys/devices/system/node, with the processors in
/// `allowed`. Nodes without processors are omitted. Without a description there are no nodes.
std::vector<NumaNode> readNumaNodes(const std::string &folder, const std::vector<int> &allowed);

/// Returns the processors that this process may use.
std::vector<int> allowedProcessors();

/// Distributes `threads` threads in proportion to the processors of the nodes.
std::vector<int> shareThreads(const std::vector<NumaNode> &nodes, int threads);

/// Returns whether there are at least two nodes. Cheap enough for every call.
bool hasNumaNodes();

using NumaNodes = std::shared_ptr<const std::vector<NumaNode>>;

/// Returns the nodes of this machine, read once, or those of the last useNumaNodes.
NumaNodes numaNodes();
/// Runs later large calls on these nodes. With fewer than two, threads run anywhere. For tests.
void useNumaNodes(std::vector<NumaNode> nodes);

} // namespace kpkg::cpu
#endif
