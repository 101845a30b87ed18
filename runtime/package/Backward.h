// Checks gradients of ops against both ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_BACKWARD_H
#define KPKG_PACKAGE_BACKWARD_H

#include "runtime/package/Tables.h"

namespace kpkg::package {

/// Checks whether a backward fits its op and the op that it names: indices, kinds, counts. Returns an error
/// text; empty if everything fits.
std::string checkBackward(const OpEntry &op, const std::vector<OpEntry> &ops);

} // namespace kpkg::package
#endif
