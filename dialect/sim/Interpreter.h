// Interprets a tile.kernel on host memory, one block after the other: the reference for every compiled form.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/sim/Values.h"
#include "dialect/tile/ir/TileDialect.h"
#include "llvm/Support/Error.h"
#include <array>

namespace kpkg::sim {
/// Runs all blocks of `grid` (x, y, z). A kernel with tile.for_tiles distributes its iterations over them. Errors are
/// arguments that do not match the signature, an unknown op, a failed tile.assert, a division by zero, and too many
/// steps.
llvm::Error run(tile::KernelOp kernel, llvm::ArrayRef<Argument> arguments, std::array<int64_t, 3> grid,
                const Options &options = {});
} // namespace kpkg::sim
