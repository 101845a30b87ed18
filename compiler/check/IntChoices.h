// Declares short lists of the values that an Int can have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Hir.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kpkg::compiler {

/// Limit of the values in a list.
constexpr uint64_t maxChoices = 64;

/// Returns whether a value between the first and the last one is missing.
bool hasGaps(const std::vector<int64_t> &values);
/// Returns the values of either list in ascending order; nothing if one is unknown or there are too many.
std::optional<std::vector<int64_t>> eitherOf(std::optional<std::vector<int64_t>> a,
                                             const std::optional<std::vector<int64_t>> &b);
/// Returns whether computedChoices() knows the operation.
bool computesChoices(hir::Kind kind);
/// Returns the results of the operation for all pairs of values; nothing if one has no result or there are too many.
std::optional<std::vector<int64_t>> computedChoices(hir::Kind kind, const std::vector<int64_t> &lhs,
                                                    const std::vector<int64_t> &rhs);

} // namespace kpkg::compiler
