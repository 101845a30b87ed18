// Writes parts of remarks in words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace kpkg::kgpu {
/// Returns "1 tile", "2 tiles".
inline std::string counted(int64_t number, llvm::StringRef noun) {
  return std::to_string(number) + " " + noun.str() + (number == 1 ? "" : "s");
}
} // namespace kpkg::kgpu
