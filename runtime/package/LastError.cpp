// Keeps this thread's last error for kpkg_last_error.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/LastError.h"

namespace kpkg::package {

static Error &slot() {
  static thread_local Error last{KPKG_OK, "no error", {}, {}, {}};
  return last;
}

kpkg_status fail(Error error) {
  slot() = std::move(error);
  return slot().status;
}

kpkg_status fail(const Status &status) { return status ? KPKG_OK : fail(status.error()); }

const Error &lastError() { return slot(); }

} // namespace kpkg::package
