// Expands names in `--input` texts that stand for several values: "x=randn(M,N,f32)" with "M=512,1024".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/result.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kpkg::command::bench {

/// One value for each name of the sweeps, in their order.
using SweepPoint = std::vector<std::pair<std::string, std::string>>;

/// Returns the name in "name=value"; empty if there is none.
std::string inputName(std::string_view input);

/// Replaces the names of `point` in `input` by their values. Only whole words after "=" are replaced, not in quotes and
/// not after a dot, so that a sweep over T does not change ".T".
std::string substitute(std::string_view input, const SweepPoint &point);

/// Returns all combinations of the values of the sweeps ("M=512,1024"), the last sweep fastest; one empty point without
/// sweeps. Refuses a sweep without a name or values, a name that is repeated or in none of `inputs`, and more than 1000
/// combinations.
Result<std::vector<SweepPoint>> expandSweeps(const std::vector<std::string> &sweeps,
                                             const std::vector<std::string> &inputs);

} // namespace kpkg::command::bench
