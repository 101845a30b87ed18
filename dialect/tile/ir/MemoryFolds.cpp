// Implements folds and canonicalisation of view queries, `tile.drop`, `tile.slice` and `tile.assert`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace kpkg::tile;

/// Returns the dimension of the source of `drop` that became dimension `kept` of its result.
static int64_t sourceDimension(DropOp drop, int64_t kept) {
  for (int64_t dim : drop.getDims())
    if (dim <= kept)
      ++kept;
  return kept;
}

/// Redirects a query of a part to its source. Extents and strides of the remaining dimensions are the same.
template <typename Op> static OpFoldResult foldQuery(Op op) {
  if (auto slice = op.getView().template getDefiningOp<SliceOp>();
      slice && (slice.getDimension() != op.getDimension() || std::is_same_v<Op, StrideOp>)) {
    op.getViewMutable().assign(slice.getView());
    return op.getResult();
  }
  auto drop = op.getView().template getDefiningOp<DropOp>();
  if (!drop)
    return {};
  int64_t dimension = sourceDimension(drop, op.getDimension());
  op.getViewMutable().assign(drop.getView());
  op.setDimension(dimension);
  return op.getResult();
}

OpFoldResult DimOp::fold(FoldAdaptor) {
  if (auto scratch = getView().getDefiningOp<ScratchOp>())
    return IntegerAttr::get(getType(), scratch.getShape()[getDimension()]);
  return foldQuery(*this);
}

OpFoldResult StrideOp::fold(FoldAdaptor) {
  if (getView().getType().getUnit() == static_cast<int64_t>(getDimension()))
    return IntegerAttr::get(getType(), 1);
  if (auto scratch = getView().getDefiningOp<ScratchOp>())
    return IntegerAttr::get(getType(), scratch.getStride(int64_t(getDimension())));
  return foldQuery(*this);
}

OpFoldResult DropOp::fold(FoldAdaptor) {
  if (getDims().empty() && getView().getType() == getType())
    return getView();
  return {};
}

namespace {
/// Merges drop (drop v) to drop v.
struct MergeDrops final : OpRewritePattern<DropOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DropOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getView().getDefiningOp<DropOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "its view is not made by a drop");
    SmallVector<std::pair<int64_t, Value>> dropped;
    for (auto [dim, index] : llvm::zip_equal(inner.getDims(), inner.getIndices()))
      dropped.emplace_back(dim, index);
    for (auto [dim, index] : llvm::zip_equal(op.getDims(), op.getIndices()))
      dropped.emplace_back(sourceDimension(inner, dim), index);
    llvm::sort(dropped, llvm::less_first());
    SmallVector<int64_t> dims(llvm::make_first_range(dropped));
    SmallVector<Value> indices(llvm::make_second_range(dropped));
    rewriter.replaceOpWithNewOp<DropOp>(op, op.getType(), inner.getView(), dims, indices);
    return success();
  }
};

/// Propagates the unit dimension from the source's type to the result type, so that facts of kernel arguments reach the
/// loads.
struct RefineDrop final : OpRewritePattern<DropOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DropOp op, PatternRewriter &rewriter) const override {
    ViewType known = op.getView().getType().drop(op.getDims());
    if (op.getType() == known)
      return rewriter.notifyMatchFailure(op, "its type states all facts");
    rewriter.replaceOpWithNewOp<DropOp>(op, known, op.getView(), op.getDims(), op.getIndices());
    return success();
  }
};
/// Propagates the unit dimension to the result types of slices.
struct RefineSlice final : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    ViewType known = op.getView().getType().slice(op.getDimension());
    if (op.getType() == known)
      return rewriter.notifyMatchFailure(op, "its type states all facts");
    rewriter.replaceOpWithNewOp<SliceOp>(op, known, op.getView(), op.getDimension(), op.getBegin(), op.getEnd());
    return success();
  }
};
} // namespace

void SliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<RefineSlice>(context);
}

void DropOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<MergeDrops, RefineDrop>(context);
}

LogicalResult AssertOp::canonicalize(AssertOp op, PatternRewriter &rewriter) {
  DenseElementsAttr tile;
  bool holds = matchPattern(op.getCondition(), m_One()) ||
               (matchPattern(op.getCondition(), m_Constant(&tile)) && tile.isSplat() && tile.getSplatValue<bool>());
  if (!holds)
    return rewriter.notifyMatchFailure(op, "condition is not known to be true");
  rewriter.eraseOp(op);
  return success();
}
