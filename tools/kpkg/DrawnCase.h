// Draws random inputs of an op, in the format of `--input`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>
#include <random>
#include <string>
#include <vector>

namespace kpkg::command {

/// The dtypes of drawn calls, the likeliest to be accepted first.
inline constexpr DType drawnDTypes[] = {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int8,
                                        DType::Int16,   DType::Int32,   DType::Int64,   DType::UInt8,    DType::Bool};

/// Draws arguments of an op: mostly tensors of one dtype with related shapes. These are equal, have equal last extents,
/// or share a few extents. The caller must test whether the op accepts them.
///
/// Arguments in `fixed` are omitted. If an argument's type cannot be drawn, the result is empty, and `why` gives the
/// reason.
std::vector<std::string> drawInputs(const Op &op, DType dtype, const std::vector<std::string> &fixed,
                                    std::mt19937_64 &random, std::string &why);

} // namespace kpkg::command
