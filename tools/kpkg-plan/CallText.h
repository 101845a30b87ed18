// Parses calls written as text: "float32[2, 3], None, -1, [4, 5], bfloat16, "mean"".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Evaluate.h"
#include <deque>
#include <string_view>

namespace kpkg {

/// The arguments of a call, with the data to which they point. Tensors are dtype[shape] or dtype[shape]@[strides];
/// without strides they are dense. tensors[float32[2], float32[3]] is a list, whose tensors follow behind the
/// arguments.
struct TextCall {
  std::vector<plan::Argument> arguments;
  std::deque<std::vector<int64_t>> numbers;
  std::deque<std::string> strings;
};

/// Returns false with `error` set if the text is not a call.
bool parseCall(std::string_view text, TextCall &call, std::string &error);

} // namespace kpkg
