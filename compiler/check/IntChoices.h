// Short lists of the values that an Int can have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace kpkg::compiler {

/// Whether a value between the first and the last one is missing.
bool hasGaps(const std::vector<int64_t> &values);
/// The values of either list, ascending; nothing where one is unknown or they are too many.
std::optional<std::vector<int64_t>> eitherOf(std::optional<std::vector<int64_t>> a,
                                             const std::optional<std::vector<int64_t>> &b);

} // namespace kpkg::compiler
