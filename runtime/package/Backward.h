// Gradients of ops in the manifest: reading them, and checking them against both ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_BACKWARD_H
#define KPKG_PACKAGE_BACKWARD_H

#include "runtime/package/Tables.h"

namespace kpkg::package {

/// Reads the `backward` of an op. Says what is wrong with it; empty when it is well-formed.
std::string readBackward(const nlohmann::json &value, Backward &backward);

/// Whether a well-formed backward fits its op and the op that it names: indices, kinds, counts. Says what does not;
/// empty when all does.
std::string checkBackward(const OpEntry &op, const std::vector<OpEntry> &ops);

/// The same form again: {"op": name, "arguments": [["gradient", 0], ...]}.
nlohmann::ordered_json backwardRecord(const Backward &backward);

} // namespace kpkg::package
#endif
