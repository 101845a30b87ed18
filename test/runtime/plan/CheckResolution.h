// Checks the invariants of a resolution, for any program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Program.h"
#include <deque>
#include <random>

namespace kpkg::plan {

/// Returns the first violation, or an empty text.
///
/// Examples are a view outside of its buffer, a copy between different shapes, and outputs that share memory.
std::string checkResolution(const Program &program, CallSignature call, const Resolution &resolution);

/// Holds random arguments of the kinds that a program takes, and the data that they point to.
struct RandomCall {
  std::vector<Argument> arguments;
  std::deque<std::vector<int64_t>> numbers;
};
RandomCall randomCall(const Program &program, std::mt19937_64 &random);

} // namespace kpkg::plan
