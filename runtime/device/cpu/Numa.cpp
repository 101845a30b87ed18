// Finds the NUMA nodes of this machine and their processors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/Numa.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sched.h>

namespace kpkg::cpu {

/// Limit of numbers, larger than any machine needs: a damaged list must not exhaust memory.
static constexpr int mostNumbers = 1 << 16;

std::vector<int> readNumbers(std::string_view list) {
  std::vector<int> numbers;
  const char *at = list.data(), *end = at + list.size();
  while (at != end && *at != '\n') {
    int first = 0;
    auto read = std::from_chars(at, end, first);
    int last = first;
    if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc() || first < 0 || last < first || last >= mostNumbers)
      return {};
    for (int number = first; number <= last; ++number)
      numbers.push_back(number);
    at = read.ptr;
    if (at != end && *at == ',')
      ++at;
    else if (at != end && *at != '\n')
      return {};
  }
  return numbers;
}

static std::vector<int> readList(const std::string &path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return readNumbers(line);
}

std::vector<NumaNode> readNumaNodes(const std::string &folder, const std::vector<int> &allowed) {
  std::vector<NumaNode> nodes;
  for (int number : readList(folder + "/online")) {
    NumaNode node = {number, {}};
    std::vector<int> processors = readList(folder + "/node" + std::to_string(number) + "/cpulist");
    std::sort(processors.begin(), processors.end());
    std::set_intersection(processors.begin(), processors.end(), allowed.begin(), allowed.end(),
                          std::back_inserter(node.processors));
    if (!node.processors.empty())
      nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<int> allowedProcessors() {
  std::vector<int> processors;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
      if (CPU_ISSET(processor, &set))
        processors.push_back(processor);
  return processors;
}

std::vector<int> shareThreads(const std::vector<NumaNode> &nodes, int threads) {
  int64_t all = 0, before = 0;
  for (const NumaNode &node : nodes)
    all += int64_t(node.processors.size());
  std::vector<int> shares;
  for (const NumaNode &node : nodes) { // computed from the ends of shares, so that they add up to `threads`
    int64_t end = before + int64_t(node.processors.size());
    shares.push_back(int(threads * end / all - threads * before / all));
    before = end;
  }
  return shares;
}

namespace {
struct Current {
  Current() { set(readNumaNodes("/sys/devices/system/node", allowedProcessors())); }
  void set(std::vector<NumaNode> given) {
    std::lock_guard guard(lock);
    nodes = std::make_shared<const std::vector<NumaNode>>(std::move(given));
    areSeveral.store(nodes->size() > 1, std::memory_order_relaxed);
  }

  std::mutex lock;
  NumaNodes nodes;
  std::atomic<bool> areSeveral = false;
};
} // namespace

/// Never destroyed, because static destructors may make calls.
static Current &current() {
  static Current &only = *new Current;
  return only;
}

bool hasNumaNodes() { return current().areSeveral.load(std::memory_order_relaxed); }

NumaNodes numaNodes() {
  std::lock_guard guard(current().lock);
  return current().nodes;
}

void useNumaNodes(std::vector<NumaNode> nodes) { current().set(std::move(nodes)); }

} // namespace kpkg::cpu
