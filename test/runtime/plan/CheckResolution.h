// What must hold of every resolution, whatever program made it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Program.h"
#include <deque>
#include <random>

namespace kpkg::plan {

/// Empty, or what is wrong: a view outside of its buffer, a copy between different shapes, outputs that share memory,
/// ...
std::string checkResolution(const Program &program, CallSignature call, const Resolution &resolution);

/// Arguments of the kinds that a program wants, with what they point at.
struct RandomCall {
  std::vector<Argument> arguments;
  std::deque<std::vector<int64_t>> numbers;
};
RandomCall randomCall(const Program &program, std::mt19937_64 &random);

} // namespace kpkg::plan
