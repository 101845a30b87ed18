// Computes whether a wgmma product adds to its accumulator or starts a new sum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/PatternMatch.h"

namespace kpkg::kgpu {

/// Returns an i1, defined before `dot`, that says whether the product adds to its accumulator. An accumulator that is
/// zero, or is zero in the first iteration of the surrounding loops, is replaced by poison. Registers that are set to
/// zero would keep ptxas from overlapping the product with others that are in flight. May replace the surrounding
/// loops.
mlir::Value whetherAdds(mlir::IRRewriter &rewriter, tile::DotOp dot);

} // namespace kpkg::kgpu
