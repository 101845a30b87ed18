// Keeps this thread's last error for kpkg_last_error.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_LASTERROR_H
#define KPKG_PACKAGE_LASTERROR_H

#include <kpkg/result.hpp>

namespace kpkg::package {

/// Keeps the error and returns its status.
kpkg_status fail(Error error);
kpkg_status fail(const Status &status);
const Error &lastError();

} // namespace kpkg::package
#endif
