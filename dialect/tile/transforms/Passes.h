// Declares the passes over the tile dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Pass/Pass.h"

namespace kpkg::tile {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dialect/tile/transforms/Passes.h.inc"
} // namespace kpkg::tile
