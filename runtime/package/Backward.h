// Reads gradients of ops from the manifest, and checks them against both ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_BACKWARD_H
#define KPKG_PACKAGE_BACKWARD_H

#include "runtime/package/Tables.h"

namespace kpkg::package {

/// Reads the `backward` of an op. Returns an error text; empty if it is well-formed.
std::string readBackward(const nlohmann::json &value, Backward &backward);

/// Checks whether a well-formed backward fits its op and the op that it names: indices, kinds, counts. Returns an error
/// text; empty if everything fits.
std::string checkBackward(const OpEntry &op, const std::vector<OpEntry> &ops);

/// Converts it back to JSON: {"op": name, "arguments": [["gradient", 0], ...]}.
nlohmann::ordered_json backwardRecord(const Backward &backward);

} // namespace kpkg::package
#endif
