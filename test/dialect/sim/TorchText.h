// Prints a tile kernel as Python: one call per line of the functions in tile_on_torch.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "llvm/Support/raw_ostream.h"

namespace kpkg::sim::test {
/// Writes `def <symbol>(block, grid, <arguments>):`. Every op becomes `results = run("<op name>", [operands], [result
/// types], {attributes}, [regions as functions])`, and control flow becomes Python's.
void printAsTorch(tile::KernelOp kernel, llvm::raw_ostream &stream);
} // namespace kpkg::sim::test
