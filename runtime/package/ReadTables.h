// Declares the reader of a manifest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_READTABLES_H
#define KPKG_PACKAGE_READTABLES_H

#include "runtime/package/Tables.h"

#include <nlohmann/json_fwd.hpp>

namespace kpkg::package {

/// Reads and checks a manifest. The error names the entry and its problem.
///
/// The result is a pointer, because names refer into it, so that it must not move. Rows of the tuning table are
/// missing: readTuning() adds them.
Result<std::shared_ptr<Tables>> readTables(const nlohmann::json &manifest);

} // namespace kpkg::package
#endif
