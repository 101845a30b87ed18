// Copies of a kernel for different facts about its arguments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {

/// Replaces each kernel of `module` by its variants, whose symbols end in "__unit" and "__any": in "unit" every view that is not only read
/// as an operand of dots has stride 1 in its last dimension, which its type states; "any" states nothing. Operands of dots are packed, which
/// looks at the strides that it finds. A kernel to which "unit" would add nothing becomes "any" alone.
void makeVariants(mlir::ModuleOp module);

} // namespace kpkg::tile
