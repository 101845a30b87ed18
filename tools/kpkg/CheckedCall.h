// Calls of an op on inputs from text, and how far their results are from its reference's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Place.h"
#include <string>
#include <vector>

namespace kpkg::command {

/// What a call makes of its arguments, on the host: results, then the tensors that it writes. The arguments are made
/// anew, since calls may write to them.
Result<std::vector<Tensor>> outcome(const Op &op, const std::vector<std::string> &inputs, const Place &place);

/// The first disagreement of two outcomes, empty where there is none. `flops` as for allowedError().
std::string firstDisagreement(const std::vector<Tensor> &actual, const std::vector<Tensor> &expected, double flops);

} // namespace kpkg::command
