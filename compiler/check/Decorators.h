// Lists the decorators of functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string_view>

namespace kpkg::compiler {

inline constexpr std::string_view decoratorNames[] = {
    "kernel",         "specialize",   "tune", "schedule", "register.op", "register.reference", "register.backward",
    "register.torch", "register.test"};

} // namespace kpkg::compiler
