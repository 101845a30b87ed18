// Names attributes of a tile.kernel that only some of its compilers read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/StringRef.h"

namespace kpkg::tile {

/// An array of i64: the numbers of view arguments that a launch may omit. All extents of an omitted view are 0.
inline constexpr llvm::StringLiteral optionalArguments = "tile.optional";
/// An array of i64: the threads of a block along x, y and z. The body of such a kernel is the code of one thread.
inline constexpr llvm::StringLiteral threads = "tile.threads";
/// An i64: the blocks of a cluster of a kernel with threads, if there are several. The grid counts clusters.
inline constexpr llvm::StringLiteral clusterBlocks = "tile.cluster";

} // namespace kpkg::tile
