// Implements folds and canonicalisation of ops that create or reshape tiles, and of one-element reductions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/SplatThrough.h"

using namespace mlir;
using namespace kpkg::tile;

/// Returns a splat constant in another shape, or null.
static DenseElementsAttr resplat(Attribute value, Type type) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(value);
  return dense && dense.isSplat() ? dense.resizeSplat(cast<ShapedType>(type)) : DenseElementsAttr();
}

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (auto value = dyn_cast_or_null<TypedAttr>(adaptor.getValue()); isa_and_nonnull<IntegerAttr, FloatAttr>(value))
    return DenseElementsAttr::get(cast<ShapedType>(getType()), Attribute(value));
  return {};
}

OpFoldResult ScalarOp::fold(FoldAdaptor adaptor) {
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getValue()))
    return dense.getSplatValue<Attribute>();
  Operation *source = getValue().getDefiningOp();
  if (auto splat = dyn_cast_or_null<SplatOp>(source))
    return splat.getValue();
  // The operand of such an op has one element too.
  if (isa_and_nonnull<BroadcastOp, ReshapeOp, PermuteOp>(source)) {
    getValueMutable().assign(source->getOperand(0));
    return getResult();
  }
  return {};
}

OpFoldResult IotaOp::fold(FoldAdaptor) {
  auto type = cast<RankedTensorType>(getType());
  if (type.getNumElements() == 1)
    return DenseElementsAttr::get(type, Attribute(IntegerAttr::get(type.getElementType(), 0)));
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getValue().getType() == getType())
    return getValue();
  if (DenseElementsAttr splat = resplat(adaptor.getValue(), getType()))
    return splat;
  if (auto inner = getValue().getDefiningOp<BroadcastOp>()) {
    getValueMutable().assign(inner.getValue());
    return getResult();
  }
  return {};
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getValue().getType() == getType())
    return getValue();
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getValue()))
    return dense.reshape(cast<ShapedType>(getType()));
  if (auto inner = getValue().getDefiningOp<ReshapeOp>()) {
    getValueMutable().assign(inner.getValue());
    return getResult();
  }
  return {};
}

OpFoldResult PermuteOp::fold(FoldAdaptor adaptor) {
  if (llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getPermutation().size())))
    return getValue();
  if (DenseElementsAttr splat = resplat(adaptor.getValue(), getType()))
    return splat;
  if (auto inner = getValue().getDefiningOp<PermuteOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t dim : getPermutation())
      composed.push_back(inner.getPermutation()[dim]);
    getValueMutable().assign(inner.getValue());
    setPermutation(composed);
    return getResult();
  }
  return {};
}

OpFoldResult ReduceOp::fold(FoldAdaptor adaptor) {
  if (getValue().getType() == getType())
    return getValue();
  bool idempotent = getKind() != ReduceKind::Sum && getKind() != ReduceKind::Prod;
  if (DenseElementsAttr splat = idempotent ? resplat(adaptor.getValue(), getType()) : DenseElementsAttr())
    return splat;
  return {};
}

OpFoldResult ArgReduceOp::fold(FoldAdaptor) {
  auto type = cast<RankedTensorType>(getType());
  if (cast<RankedTensorType>(getValue().getType()).getDimSize(getAxis()) != 1)
    return {};
  return DenseElementsAttr::get(type, Attribute(IntegerAttr::get(type.getElementType(), 0)));
}

namespace {
/// Rewrites a permute that keeps the order of dimensions with extent > 1 to a reshape, because it moves no element.
struct PermuteToReshape final : OpRewritePattern<PermuteOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PermuteOp op, PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    int64_t last = -1;
    for (int64_t dim : op.getPermutation()) {
      if (type.getDimSize(dim) == 1)
        continue;
      if (dim < last)
        return rewriter.notifyMatchFailure(op, "it moves elements");
      last = dim;
    }
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getValue());
    return success();
  }
};
} // namespace

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SplatThrough<BroadcastOp>>(context);
}
void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SplatThrough<ReshapeOp>>(context);
}
void PermuteOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SplatThrough<PermuteOp>, PermuteToReshape>(context);
}
