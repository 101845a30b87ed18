// The text of the prelude, kernels_src/std/std.k, compiled in.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string_view>

namespace kpkg::compiler {
extern const std::string_view preludeText;
} // namespace kpkg::compiler
