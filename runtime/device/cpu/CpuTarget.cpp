// Determines which code this machine's CPU can run, and how many threads this process may use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/CpuTarget.h"

#include <algorithm>
#include <atomic>
#include <sched.h>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace kpkg::cpu {

static constexpr std::string_view tileTarget = "x86-64-v4-amx";
static constexpr std::string_view allTargets[] = {tileTarget, "x86-64-v4-bf16", "x86-64-v4", "x86-64-v3", "aarch64"};

#if defined(__x86_64__)

/// Returns whether the CPU has AMX with products of bfloat16, and the operating system saves the state of the tiles.
static bool hasTiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned savesState = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & savesState))
    return false;
  constexpr unsigned bfloat16Products = 1u << 22, tiles = 1u << 24;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & bfloat16Products) || !(d & tiles))
    return false;
  constexpr unsigned tileStates = 3u << 17; // configuration and data
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & tileStates) == tileStates;
}

/// Asks Linux to let all threads of the process use tiles. Linux refuses if the alternate signal stack of a thread is
/// too small for their 8 KiB.
static bool requestTiles() {
  constexpr int requestState = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM of asm/prctl.h, which old headers lack
  return ::syscall(SYS_arch_prctl, requestState, tileData) == 0;
}

#else

static bool requestTiles() { return false; }

#endif

/// Returns the targets that the CPU and its operating system support, best first.
static std::span<const std::string_view> supportedTargets() {
  static const std::vector<std::string_view> targets = [] {
    std::vector<std::string_view> found;
#if defined(__x86_64__)
    // The builtins check CPUID, and the register state that the operating system saves.
    __builtin_cpu_init();
    bool hasVectors = __builtin_cpu_supports("x86-64-v4"), hasPairs = __builtin_cpu_supports("avx512bf16");
    if (hasVectors && hasPairs && hasTiles())
      found.push_back(tileTarget);
    if (hasVectors && hasPairs)
      found.push_back("x86-64-v4-bf16");
    if (hasVectors)
      found.push_back("x86-64-v4");
    if (__builtin_cpu_supports("x86-64-v3"))
      found.push_back("x86-64-v3");
#elif defined(__aarch64__)
    found.push_back("aarch64");
#endif
    return found;
  }();
  return targets;
}

/// Asks once.
static bool mayUseTiles() {
  static const bool areAllowed = requestTiles();
  return areAllowed;
}

std::optional<size_t> targetRank(std::string_view target) {
  auto supported = supportedTargets();
  auto found = std::find(supported.begin(), supported.end(), target);
  if (found == supported.end() || (target == tileTarget && !mayUseTiles()))
    return std::nullopt;
  return size_t(found - supported.begin());
}

std::span<const std::string_view> runnableTargets() {
  auto supported = supportedTargets();
  bool isRefused = !supported.empty() && supported.front() == tileTarget && !mayUseTiles();
  return isRefused ? supported.subspan(1) : supported;
}

bool isCpuTarget(std::string_view target) {
  return std::find(std::begin(allTargets), std::end(allTargets), target) != std::end(allTargets);
}

static int processorCount() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    return CPU_COUNT(&set);
  return std::max(1, int(std::thread::hardware_concurrency()));
}

/// 0 until a number is set.
static std::atomic<int> chosenCount = 0;
static std::atomic<int (*)()> followed = nullptr;

int threadCount() {
  if (int chosen = chosenCount.load(std::memory_order_relaxed))
    return chosen;
  static const int available = std::min(processorCount(), mostThreads);
  int (*source)() = followed.load(std::memory_order_relaxed);
  return source ? std::clamp(source(), 1, mostThreads) : available;
}

void setThreadCount(int count) { chosenCount.store(count, std::memory_order_relaxed); }

void followThreadCount(int (*count)()) { followed.store(count, std::memory_order_relaxed); }

} // namespace kpkg::cpu
