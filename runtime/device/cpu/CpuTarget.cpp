// Which code this machine's CPU can run, and how many threads this process may use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/CpuTarget.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <thread>
#include <vector>

namespace kpkg::cpu {

static constexpr std::string_view allTargets[] = {"x86-64-v4-bf16", "x86-64-v4", "x86-64-v3", "aarch64"};

static std::vector<std::string_view> detect() {
  std::vector<std::string_view> found;
#if defined(__x86_64__)
  // These look at CPUID and at the register state that the operating system saves.
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

static int countThreads() {
  if (const char *text = std::getenv("KPKG_NUM_THREADS")) {
    int count = 0;
    auto [end, problem] = std::from_chars(text, text + std::strlen(text), count);
    if (problem == std::errc() && *end == 0 && count > 0)
      return std::min(count, 1024);
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    return CPU_COUNT(&set);
  return std::max(1, int(std::thread::hardware_concurrency()));
}

int threadCount() {
  static const int count = countThreads();
  return count;
}

} // namespace kpkg::cpu
