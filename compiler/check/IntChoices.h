// Declares short lists of the values that an Int can have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace kpkg::compiler {

/// Returns whether a value between the first and the last one is missing.
bool hasGaps(const std::vector<int64_t> &values);
/// Returns the values of either list in ascending order; nothing if one is unknown or there are too many.
std::optional<std::vector<int64_t>> eitherOf(std::optional<std::vector<int64_t>> a,
                                             const std::optional<std::vector<int64_t>> &b);

} // namespace kpkg::compiler
