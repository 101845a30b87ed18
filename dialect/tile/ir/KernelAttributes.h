// Names attributes of a tile.kernel that only some of its compilers read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/StringRef.h"

namespace kpkg::tile {

/// An array of i64: the numbers of view arguments that a launch may omit. All extents of an omitted view are 0.
inline constexpr llvm::StringLiteral optionalArguments = "tile.optional";

} // namespace kpkg::tile
