// Determines which code this machine's CPU can run, and how many threads this process may use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CPU_CPUTARGET_H
#define KPKG_DEVICE_CPU_CPUTARGET_H

#include <optional>
#include <span>
#include <string_view>

namespace kpkg::cpu {

/// Returns the rank of a manifest's target name among those that this process can run, 0 for the best, or nothing.
///
/// Asks Linux for the tiles of AMX only when their target is named. Afterwards the process needs larger signal stacks.
std::optional<size_t> targetRank(std::string_view target);

/// Returns the target names that this process can run, best first. Asks Linux for the tiles of AMX where the CPU has
/// them.
std::span<const std::string_view> runnableTargets();

/// Returns whether kpkg knows the host target, runnable here or not.
bool isCpuTarget(std::string_view target);

/// Maximum number of threads.
inline constexpr int mostThreads = 1024;

/// Returns the threads of a large call. That is the last number of setThreadCount, else the result of the followed
/// function, else the size of the process' CPU set. Cheap enough for every call.
int threadCount();
/// Sets the number of threads, 1 to mostThreads.
void setThreadCount(int count);
/// Asks `count` at each large call, on its thread, until setThreadCount is called; null ends that. It must not throw,
/// and its result is clamped to 1 to mostThreads.
void followThreadCount(int (*count)());

} // namespace kpkg::cpu
#endif
