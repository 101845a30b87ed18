// Named ranges for NVTX tools (Nsight Systems and others), through whatever NVTX library the process can load.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_RANGES_H
#define KPKG_PACKAGE_RANGES_H

#include <kpkg/result.hpp>

namespace kpkg::package {

/// Finds the library, once. KPKG_ERROR_NOT_FOUND lists what was tried.
Status openRanges();
/// Only after openRanges() succeeded. Ranges of a thread nest.
void pushRange(const char *name);
void popRange();

} // namespace kpkg::package
#endif
