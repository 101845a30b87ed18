// Products of warpgroups that begin a sum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_KGPU_ASYNC_PRODUCT_SUMS_H
#define KPKG_KGPU_ASYNC_PRODUCT_SUMS_H

#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/PatternMatch.h"

namespace kpkg::kgpu {

/// i1, before `dot`: whether the product adds to its accumulator. One that is zero, or is so in the first turn of loops
/// around it, gets no value at all: registers that are set to zero would stand between ptxas and products that run
/// while others are issued. Loops may be replaced.
mlir::Value whetherAdds(mlir::IRRewriter &rewriter, tile::DotOp dot);

} // namespace kpkg::kgpu
#endif
