// Which code this machine's CPU can run, and how many threads this process may use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CPU_CPUTARGET_H
#define KPKG_DEVICE_CPU_CPUTARGET_H

#include <span>
#include <string_view>

namespace kpkg::cpu {

/// Target names of the manifest that this CPU and its operating system can run, best first.
std::span<const std::string_view> runnableTargets();

/// True for every host target that kpkg knows, runnable here or not.
bool isCpuTarget(std::string_view target);

/// The largest number of threads that can be asked for.
inline constexpr int mostThreads = 1024;

/// Threads that a large call may use: what setThreadCount said last, else what the followed function says, else the
/// size of the process' CPU set. Cheap enough for every call.
int threadCount();
/// Takes 1 to mostThreads.
void setThreadCount(int count);
/// `count` is asked at each large call, on its thread, until setThreadCount is called; null ends that. It must not
/// throw; what it gives is clamped to 1 to mostThreads.
void followThreadCount(int (*count)());

} // namespace kpkg::cpu
#endif
