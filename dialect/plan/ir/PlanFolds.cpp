// Implements folds and canonicalisation patterns of plan ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/plan/ir/Plan.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kpkg::plan_ir {

static Attribute boolAttr(MLIRContext *context, bool value) { return BoolAttr::get(context, value); }
static Attribute intAttr(MLIRContext *context, int64_t value) {
  return IntegerAttr::get(IntegerType::get(context, 64), value);
}

OpFoldResult DTypeConstantOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult StringConstantOp::fold(FoldAdaptor) { return getValueAttr(); }

OpFoldResult DTypeEqOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs())
    return boolAttr(getContext(), true);
  if (adaptor.getLhs() && adaptor.getRhs())
    return boolAttr(getContext(), adaptor.getLhs() == adaptor.getRhs());
  return {};
}

OpFoldResult StringEqOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs())
    return boolAttr(getContext(), true);
  if (adaptor.getLhs() && adaptor.getRhs())
    return boolAttr(getContext(), adaptor.getLhs() == adaptor.getRhs());
  return {};
}

OpFoldResult DTypeSizeOp::fold(FoldAdaptor adaptor) {
  auto name = dyn_cast_if_present<StringAttr>(adaptor.getDtype());
  return name ? intAttr(getContext(), dtypeSize(name)) : Attribute();
}

OpFoldResult DTypeIsFloatOp::fold(FoldAdaptor adaptor) {
  auto name = dyn_cast_if_present<StringAttr>(adaptor.getDtype());
  return name ? boolAttr(getContext(), dtypeIsFloat(name)) : Attribute();
}

OpFoldResult IsNoneOp::fold(FoldAdaptor) {
  Operation *source = getTensor().getDefiningOp();
  if (!source)
    return {};
  if (isa<NoneOp>(source))
    return boolAttr(getContext(), true);
  // The result of a view or an allocation is never null: a null source would have raised.
  if (isa<EmptyOp, EmptyLikeOp, TransposeOp, PermuteOp, ExpandOp, DropOp, SliceOp, UnsqueezeOp, SqueezeOp, UnfoldOp,
          FoldOp, ReshapeOp, ContiguousOp>(source))
    return boolAttr(getContext(), false);
  return {};
}

OpFoldResult ContiguousOp::fold(FoldAdaptor) {
  if (getTensor().getDefiningOp<EmptyOp>() || getTensor().getDefiningOp<EmptyLikeOp>() ||
      getTensor().getDefiningOp<ContiguousOp>())
    return getTensor();
  return {};
}

OpFoldResult ModOp::fold(FoldAdaptor adaptor) {
  auto lhs = dyn_cast_if_present<IntegerAttr>(adaptor.getLhs()),
       rhs = dyn_cast_if_present<IntegerAttr>(adaptor.getRhs());
  // A division by 0 is kept, because it must raise when it is reached. -1 is excluded because INT64_MIN % -1 traps in
  // C++.
  if (!lhs || !rhs || rhs.getInt() == 0 || rhs.getInt() == -1)
    return {};
  int64_t remainder = lhs.getInt() % rhs.getInt();
  if (remainder != 0 && (remainder < 0) != (rhs.getInt() < 0))
    remainder += rhs.getInt();
  return intAttr(getContext(), remainder);
}

namespace {

/// Matches `plan.list [%a, %b]` and a constant index into it.
Value entryOfList(Value list, Value index) {
  auto made = list.getDefiningOp<ListOp>();
  APInt constant;
  if (!made || !matchPattern(index, m_ConstantInt(&constant)))
    return {};
  int64_t i = constant.getSExtValue(), size = made.getValues().size();
  if (i < 0)
    i += size;
  return i >= 0 && i < size ? made.getValues()[i] : Value();
}

struct GetOfList final : OpRewritePattern<ListGetOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ListGetOp op, PatternRewriter &rewriter) const override {
    if (Value entry = entryOfList(op.getList(), op.getIndex())) {
      rewriter.replaceOp(op, entry);
      return success();
    }
    if (auto shape = op.getList().getDefiningOp<ShapeOp>()) {
      rewriter.replaceOpWithNewOp<DimOp>(op, shape.getTensor(), op.getIndex());
      return success();
    }
    return rewriter.notifyMatchFailure(op, "the list is not known");
  }
};

struct LenOfList final : OpRewritePattern<ListLenOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ListLenOp op, PatternRewriter &rewriter) const override {
    if (auto made = op.getList().getDefiningOp<ListOp>()) {
      rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, rewriter.getI64IntegerAttr(made.getValues().size()));
      return success();
    }
    if (auto shape = op.getList().getDefiningOp<ShapeOp>()) {
      rewriter.replaceOpWithNewOp<RankOp>(op, shape.getTensor());
      return success();
    }
    return rewriter.notifyMatchFailure(op, "the list is not known");
  }
};

/// Folds the extent of an allocated tensor to an entry of its shape operand, or redirects it to the tensor that it is
/// like.
struct DimOfEmpty final : OpRewritePattern<DimOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DimOp op, PatternRewriter &rewriter) const override {
    if (auto like = op.getTensor().getDefiningOp<EmptyLikeOp>()) {
      rewriter.modifyOpInPlace(op, [&] { op.getTensorMutable().assign(like.getLike()); });
      return success();
    }
    auto empty = op.getTensor().getDefiningOp<EmptyOp>();
    if (!empty)
      return rewriter.notifyMatchFailure(op, "not of an allocation");
    rewriter.replaceOpWithNewOp<ListGetOp>(op, empty.getShape(), op.getDim());
    return success();
  }
};

struct ShapeOfEmpty final : OpRewritePattern<ShapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ShapeOp op, PatternRewriter &rewriter) const override {
    if (auto like = op.getTensor().getDefiningOp<EmptyLikeOp>()) {
      rewriter.modifyOpInPlace(op, [&] { op.getTensorMutable().assign(like.getLike()); });
      return success();
    }
    auto empty = op.getTensor().getDefiningOp<EmptyOp>();
    if (!empty)
      return rewriter.notifyMatchFailure(op, "not of an allocation");
    rewriter.replaceOp(op, empty.getShape());
    return success();
  }
};

/// Forwards dtype_of through views, which never change the dtype.
struct DTypeOfView final : OpRewritePattern<DTypeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DTypeOp op, PatternRewriter &rewriter) const override {
    Operation *source = op.getTensor().getDefiningOp();
    if (auto empty = dyn_cast_if_present<EmptyOp>(source)) {
      rewriter.replaceOp(op, empty.getDtype());
      return success();
    }
    // Ops that derive a tensor from a tensor have the source as their first operand.
    if (!source || source->getDialect() != op->getDialect() || source->getNumOperands() == 0 ||
        !isa<TensorType>(source->getOperand(0).getType()) || isa<CallOp>(source))
      return rewriter.notifyMatchFailure(op, "not of a view");
    rewriter.modifyOpInPlace(op, [&] { op.getTensorMutable().assign(source->getOperand(0)); });
    return success();
  }
};

} // namespace

void DTypeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DTypeOfView>(context);
}
void ListGetOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<GetOfList>(context);
}
void ListLenOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<LenOfList>(context);
}
void DimOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DimOfEmpty>(context);
}
void ShapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfEmpty>(context);
}

} // namespace kpkg::plan_ir
