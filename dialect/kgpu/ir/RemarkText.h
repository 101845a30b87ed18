// Formats parts of remarks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace kpkg::kgpu {
/// Returns a number with its noun: "1 tile", "2 tiles".
inline std::string counted(int64_t number, llvm::StringRef noun) {
  return std::to_string(number) + " " + noun.str() + (number == 1 ? "" : "s");
}
} // namespace kpkg::kgpu
