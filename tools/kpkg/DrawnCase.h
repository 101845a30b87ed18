// Inputs of an op that chance makes, as texts that `--input` takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>
#include <random>
#include <string>
#include <vector>

namespace kpkg::command {

/// Draws arguments of an op: tensors of one dtype, mostly, and of shapes that belong together: equal ones, ones with
/// equal last extents, and ones whose extents are of a few. Whether the op takes them is for the caller to find out.
/// Arguments among `fixed` are left out. Empty where an argument is of a type that cannot be drawn; `why` then says so.
std::vector<std::string> drawInputs(const Op &op, DType dtype, const std::vector<std::string> &fixed,
                                    std::mt19937_64 &random, std::string &why);

} // namespace kpkg::command
