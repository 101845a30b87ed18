// Declares which rows of Builtins.def are the members of a type.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Type.h"
#include <string_view>

namespace kpkg::compiler {

/// Returns the base in Builtins.def of a type's methods and attributes, such as "Tile"; empty if it has none.
std::string_view memberBaseOf(const Type &type);

} // namespace kpkg::compiler
