// Tests which targets this machine runs, and when the process asks for the tiles of AMX.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/CpuTarget.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

using namespace kpkg;

TEST(CpuTarget, KnowsThisMachine) {
  EXPECT_GE(cpu::threadCount(), 1);
  for (std::string_view target : cpu::runnableTargets())
    EXPECT_TRUE(cpu::isCpuTarget(target));
  EXPECT_FALSE(cpu::isCpuTarget("sm_90a"));
}

TEST(CpuTarget, RanksTheTargetsThatItLists) {
  std::optional<size_t> last;
  for (std::string_view target : cpu::runnableTargets()) {
    std::optional<size_t> rank = cpu::targetRank(target);
    ASSERT_TRUE(rank) << target;
    EXPECT_TRUE(!last || *last < *rank) << target;
    last = rank;
  }
  EXPECT_FALSE(cpu::targetRank("sm_90a"));
}

#if defined(__x86_64__)

static bool hasTiles() {
  std::ifstream file("/proc/cpuinfo");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  return text.find("amx_bf16") != std::string::npos;
}

/// Returns whether Linux lets this process use tiles.
static bool areTilesAllowed() {
  uint64_t allowed = 0;
  constexpr int getAllowed = 0x1022; // ARCH_GET_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, getAllowed, &allowed) == 0 && (allowed >> 18 & 1);
}

/// The processes of these tests are new ones, because Linux allows tiles once and for all.
class CpuTiles : public ::testing::Test {
protected:
  void SetUp() override {
    if (!hasTiles())
      GTEST_SKIP() << "no AMX-BF16 here";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

static void exitAfterAsking() {
  bool before = cpu::targetRank("x86-64-v4-bf16") && !areTilesAllowed();
  std::exit(before && cpu::targetRank("x86-64-v4-amx") == 0 && areTilesAllowed() ? 0 : 1);
}

TEST_F(CpuTiles, AreAskedForWhenTheirTargetIsNamed) {
  EXPECT_EXIT(exitAfterAsking(), ::testing::ExitedWithCode(0), "");
}

static void exitAfterRefusal() {
  static char memory[8192]; // enough for signals without tiles
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  if (::sigaltstack(&stack, nullptr) != 0)
    std::exit(2);
  bool isRefused = !cpu::targetRank("x86-64-v4-amx") && cpu::runnableTargets().front() == "x86-64-v4-bf16";
  std::exit(isRefused ? 0 : 1);
}

TEST_F(CpuTiles, AreRefusedToSmallSignalStacks) { EXPECT_EXIT(exitAfterRefusal(), ::testing::ExitedWithCode(0), ""); }

#endif
