// Names in `--input` texts that stand for several values: "x=randn(M,N,f32)" with "M=512,1024".
//
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

/// The name in "name=value"; empty when there is none.
std::string inputName(std::string_view input);

/// `input` with the names of `point` replaced by their values: whole words of the part behind "=", but not in quotes
/// and not behind a dot, so that a sweep over T leaves ".T" alone.
std::string substitute(std::string_view input, const SweepPoint &point);

/// All combinations of what the sweeps ("M=512,1024") list, the last sweep fastest; one empty point when there are no
/// sweeps. Refused: a sweep without a name or values, a name given twice or in none of `inputs`, and more than 1000
/// combinations.
Result<std::vector<SweepPoint>> expandSweeps(const std::vector<std::string> &sweeps,
                                             const std::vector<std::string> &inputs);

} // namespace kpkg::command::bench
