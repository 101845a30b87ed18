// Generates random well-typed plan programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Decoded.h"
#include <random>

namespace kpkg::plan {

/// Returns a program that the verifier must accept.
///
/// It has branches, loops, calls, launches and every other instruction, on random registers.
DecodedModule randomProgram(std::mt19937_64 &random);

} // namespace kpkg::plan
