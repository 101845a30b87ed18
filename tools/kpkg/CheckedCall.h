// Calls an op on inputs from text, and compares its results with its reference's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Place.h"
#include <optional>
#include <string>
#include <vector>

namespace kpkg::command {

/// Returns the outcome of a call on the host: results, then the tensors that it writes. The arguments are created anew,
/// since calls may write to them.
Result<std::vector<Tensor>> outcome(const Op &op, const std::vector<std::string> &inputs, const Place &place);
/// The same with arguments on the host, which the call may write to.
Result<std::vector<Tensor>> outcome(const Op &op, const std::vector<Named> &given, const Place &place);

/// Returns the first disagreement of two outcomes; empty if there is none. `flops` as for allowedError(), which
/// `tolerance` replaces.
std::string firstDisagreement(const std::vector<Tensor> &actual, const std::vector<Tensor> &expected, double flops,
                              std::optional<double> tolerance = std::nullopt);

} // namespace kpkg::command
