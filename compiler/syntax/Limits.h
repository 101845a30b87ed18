// Limits of the parser: generous for people, and small enough that no source exhausts stack or memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstddef>

namespace kpkg::compiler::limits {

inline constexpr size_t fileBytes = 4 << 20;
inline constexpr size_t tokens = 250'000;
/// Open brackets. The generated parser takes about 3 KB of stack for each.
inline constexpr size_t brackets = 100;
/// Nested blocks.
inline constexpr size_t blocks = 60;
/// Depth of an expression's tree, which later stages traverse recursively.
inline constexpr size_t expression = 500;

} // namespace kpkg::compiler::limits
