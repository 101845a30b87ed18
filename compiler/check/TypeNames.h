// Lists the names of types besides those of the dtypes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string_view>

namespace kpkg::compiler {

inline constexpr std::string_view typeNames[] = {"Tensor", "Tile",     "Scalar",   "String", "DType",
                                                 "List",   "Function", "Optional", "Tuple"};

/// Returns a kind of comptime parameters as the type in source: `Int` for "int".
std::string_view typeOfKind(std::string_view kind);

} // namespace kpkg::compiler
