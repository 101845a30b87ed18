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

/// KPKG_NUM_THREADS when it is a positive number, else the size of the process' CPU set. Read once.
int threadCount();

} // namespace kpkg::cpu
#endif
