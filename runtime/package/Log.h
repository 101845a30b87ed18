// Sends messages to a sink that the process may set.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_LOG_H
#define KPKG_PACKAGE_LOG_H

#include <kpkg/kpkg.h>

#include <string>

namespace kpkg::package {

/// Sets the sink. Null restores the default.
void setLog(kpkg_log_fn sink, void *context);
void log(kpkg_log_level level, const std::string &message);

} // namespace kpkg::package
#endif
