// Canonicalises ops that move elements, if all elements are one scalar.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/PatternMatch.h"

namespace kpkg::tile {
/// Rewrites an op that moves elements of a splat to a splat of the result's shape.
template <typename Op> struct SplatThrough final : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;
  mlir::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter &rewriter) const override {
    auto splat = op.getValue().template getDefiningOp<SplatOp>();
    if (!splat)
      return rewriter.notifyMatchFailure(op, "operand is not a splat");
    rewriter.replaceOpWithNewOp<SplatOp>(op, op.getType(), splat.getValue());
    return mlir::success();
  }
};
} // namespace kpkg::tile
