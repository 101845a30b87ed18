// Attributes of a tile.kernel that only some who compile it look at.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/StringRef.h"

namespace kpkg::tile {

/// An array of i64: numbers of the view arguments that some launch may leave out. All extents are 0 then.
inline constexpr llvm::StringLiteral optionalArguments = "tile.optional";

} // namespace kpkg::tile
