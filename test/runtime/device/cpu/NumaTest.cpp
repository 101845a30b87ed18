// Tests NUMA nodes: reading them from Linux, and keeping each part of a range on its node's processors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/Numa.h"
#include "runtime/device/cpu/CpuTarget.h"
#include "runtime/device/cpu/Grid.h"
#include "runtime/device/cpu/NodeArenas.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <new>
#include <sched.h>
#include <unistd.h>

using namespace kpkg::cpu;
using testing::ElementsAre;
using testing::IsEmpty;
namespace fs = std::filesystem;

TEST(NumaNodes, ListsAreReadAsLinuxWritesThem) {
  EXPECT_THAT(readNumbers("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(readNumbers("5"), ElementsAre(5));
  for (const char *none : {"", "\n", "-1", "3-1", "1,x", "1 2", "0-99999999", "99999999999999"})
    EXPECT_THAT(readNumbers(none), IsEmpty()) << none;
}

namespace {
/// Mimics the folder /sys/devices/system/node.
class NumaFolder : public testing::Test {
protected:
  void SetUp() override {
    root = fs::path(testing::TempDir()) / ("numa-" + std::to_string(::getpid()));
    write("online", "0-1,3");
    write("node0/cpulist", "0-1,4-5");
    write("node1/cpulist", "2-3,6-7");
    write("node3/cpulist", ""); // a node with memory only
  }
  void TearDown() override { fs::remove_all(root); }
  void write(const std::string &name, const std::string &text) {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text << "\n";
  }
  fs::path root;
};

/// Splits the available processors into two nodes; if there is only one processor, both nodes have it.
class TwoNodes : public testing::Test {
protected:
  void SetUp() override {
    std::vector<int> all = allowedProcessors();
    size_t half = all.size() / 2;
    nodes = {{0, {all.begin(), all.end() - long(half)}},
             {1, {all.begin() + long(all.size() - std::max<size_t>(half, 1)), all.end()}}};
    useNumaNodes(nodes);
    setThreadCount(4);
  }
  void TearDown() override {
    useNumaNodes({});
    setThreadCount(int(allowedProcessors().size()));
  }
  std::vector<NumaNode> nodes;
};

/// The processors on which each element's thread may run, by element of the range.
struct Places {
  explicit Places(int64_t count) : of(size_t(count)) {}
  static void record(void *self, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      static_cast<Places *>(self)->of[size_t(i)] = allowedProcessors();
  }
  std::vector<std::vector<int>> of;
};
} // namespace

TEST_F(NumaFolder, HasTheNodesWithProcessorsThatMayBeUsed) {
  EXPECT_THAT(readNumaNodes(root, {0, 1, 2, 3, 4, 5, 6, 7}),
              ElementsAre(NumaNode{0, {0, 1, 4, 5}}, NumaNode{1, {2, 3, 6, 7}}));
  EXPECT_THAT(readNumaNodes(root, {1, 4, 6}), ElementsAre(NumaNode{0, {1, 4}}, NumaNode{1, {6}}));
  EXPECT_THAT(readNumaNodes(root, {0, 1}), ElementsAre(NumaNode{0, {0, 1}}));
  write("node1/cpulist", "x");
  EXPECT_THAT(readNumaNodes(root, {0, 2}), ElementsAre(NumaNode{0, {0}}));
  EXPECT_THAT(readNumaNodes(root / "nowhere", {0}), IsEmpty());
}

TEST(NumaNodes, ThreadsAreSharedByProcessors) {
  std::vector<NumaNode> nodes = {{0, {0, 1, 2}}, {1, {3}}};
  EXPECT_THAT(shareThreads(nodes, 4), ElementsAre(3, 1));
  EXPECT_THAT(shareThreads(nodes, 8), ElementsAre(6, 2));
  EXPECT_THAT(shareThreads(nodes, 1), ElementsAre(0, 1));
  EXPECT_THAT(shareThreads(nodes, 2), ElementsAre(1, 1));
}

TEST_F(TwoNodes, PartsOfARangeStayOnTheirs) {
  const std::vector<int> before = allowedProcessors();
  for (int round = 0; round < 3; ++round) {
    Places places(100);
    parallelFor(100, 1, Places::record, &places);
    for (size_t i = 0; i < 100; ++i)
      EXPECT_EQ(places.of[i], nodes[i / 50].processors) << i;
    EXPECT_EQ(allowedProcessors(), before) << "the caller is where it was";
  }
}

TEST_F(TwoNodes, OneThreadAndOneNodeAreAsWithoutThem) {
  EXPECT_TRUE(NodeArenas::find(2));
  EXPECT_FALSE(NodeArenas::find(1));
  useNumaNodes({nodes[0]});
  EXPECT_FALSE(NodeArenas::find(4));
}

static int32_t failAtBlock60(const KpkgCpuCall *, int64_t begin, int64_t end) {
  return begin <= 60 && 60 < end ? 7 : 0;
}

static int32_t throwAtBlock60(const KpkgCpuCall *, int64_t begin, int64_t end) {
  if (begin <= 60 && 60 < end)
    throw std::bad_alloc();
  return 0;
}

TEST_F(TwoNodes, AssertsAndErrorsComeBack) {
  Launch launch;
  launch.call.grid[0] = 100, launch.call.grid[1] = launch.call.grid[2] = 1;
  launch.workBytes = 1 << 30;
  launch.kernel = failAtBlock60;
  EXPECT_EQ(run(launch), 7);
  launch.kernel = throwAtBlock60;
  EXPECT_THROW(run(launch), std::bad_alloc);
  Places places(8);
  parallelFor(8, 1, Places::record, &places);
  EXPECT_EQ(places.of[7], nodes[1].processors);
}
