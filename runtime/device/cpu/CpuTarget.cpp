// Determines which code this machine's CPU can run, and how many threads this process may use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/CpuTarget.h"

#include <algorithm>
#include <atomic>
#include <sched.h>
#include <thread>
#include <vector>

namespace kpkg::cpu {

static constexpr std::string_view allTargets[] = {"x86-64-v4-bf16", "x86-64-v4", "x86-64-v3", "aarch64"};

static std::vector<std::string_view> detect() {
  std::vector<std::string_view> found;
#if defined(__x86_64__)
  // The builtins check CPUID, and the register state that the operating system saves.
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512bf16"))
    found.push_back("x86-64-v4-bf16");
  if (__builtin_cpu_supports("x86-64-v4"))
    found.push_back("x86-64-v4");
  if (__builtin_cpu_supports("x86-64-v3"))
    found.push_back("x86-64-v3");
#elif defined(__aarch64__)
  found.push_back("aarch64");
#endif
  return found;
}

std::span<const std::string_view> runnableTargets() {
  static const std::vector<std::string_view> targets = detect();
  return targets;
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
