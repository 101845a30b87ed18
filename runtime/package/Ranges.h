// Opens named ranges for NVTX tools (Nsight Systems and others) through any available NVTX library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_RANGES_H
#define KPKG_PACKAGE_RANGES_H

#include <kpkg/result.hpp>

namespace kpkg::package {

/// Finds the library, once. KPKG_ERROR_NOT_FOUND lists the names that were tried.
Status openRanges();
/// Requires that openRanges() succeeded. Ranges of a thread nest.
void pushRange(const char *name);
void popRange();

} // namespace kpkg::package
#endif
