// Calls written as text: "float32[2, 3], None, -1, [4, 5], bfloat16, "mean"".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Evaluate.h"
#include <deque>
#include <string_view>

namespace kpkg {

/// The arguments of a call, with what they point at. Tensors are dtype[shape] or dtype[shape]@[strides]; dense without
/// strides.
struct TextCall {
  std::vector<plan::Argument> arguments;
  std::deque<std::vector<int64_t>> numbers;
  std::deque<std::string> strings;
};

/// False with `error` set if the text is no call.
bool parseCall(std::string_view text, TextCall &call, std::string &error);

} // namespace kpkg
