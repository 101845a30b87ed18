// Implements the op that unpacks words: its verifier and canonicalisation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace kpkg::tile;

LogicalResult UnpackOp::verify() {
  auto words = cast<RankedTensorType>(getValue().getType()), fields = cast<RankedTensorType>(getType());
  int64_t bits = getBits();
  auto word = dyn_cast<IntegerType>(words.getElementType());
  if (!word || word.getWidth() < 8 || (bits != 1 && bits != 2 && bits != 4))
    return emitOpError() << "takes 1, 2 or 4 bits out of words of 8 or more, not " << bits << " out of "
                         << words.getElementType();
  if (words.getRank() == 0)
    return emitOpError("needs a dimension of which words become several elements");
  Type element = fields.getElementType();
  bool isFloat = element.isF16() || element.isBF16() || element.isF32();
  if (!isFloat && !element.isInteger(8))
    return emitOpError() << "gives numbers as i8, f16, bf16 or f32, not as " << element;
  if (getIsFloat() && (bits != 4 || getIsSigned() || !isFloat))
    return emitOpError("takes floats of 4 bits, which have a sign of their own, as f16, bf16 or f32");
  SmallVector<int64_t> shape(words.getShape());
  shape.back() *= getFields();
  if (fields.getShape() != ArrayRef<int64_t>(shape))
    return emitOpError() << "gives " << getFields() << " fields of each word, not " << fields << " of " << words;
  return success();
}

namespace {
/// Converts fields to floats where they are taken out of their words. Targets do so with fewer instructions.
struct UnpackToFloats final : OpRewritePattern<arith::SIToFPOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SIToFPOp cast, PatternRewriter &rewriter) const override {
    auto unpack = cast.getIn().getDefiningOp<UnpackOp>();
    if (!unpack)
      return rewriter.notifyMatchFailure(cast, "converts no unpacked words");
    Type element = getElementTypeOrSelf(cast.getType());
    if (!element.isF16() && !element.isBF16() && !element.isF32())
      return rewriter.notifyMatchFailure(cast, "words are not unpacked to this type");
    rewriter.replaceOpWithNewOp<UnpackOp>(cast, cast.getType(), unpack.getValue(), unpack.getBits(),
                                          unpack.getIsSigned());
    return success();
  }
};

/// The same for fields that are floats. Each of these types holds all of their values.
template <typename Cast> struct UnpackToOtherFloats final : OpRewritePattern<Cast> {
  using OpRewritePattern<Cast>::OpRewritePattern;

  LogicalResult matchAndRewrite(Cast cast, PatternRewriter &rewriter) const override {
    auto unpack = cast.getIn().template getDefiningOp<UnpackOp>();
    if (!unpack || !unpack.getIsFloat())
      return rewriter.notifyMatchFailure(cast, "converts no unpacked floats");
    Type element = getElementTypeOrSelf(cast.getType());
    if (!element.isF16() && !element.isBF16() && !element.isF32())
      return rewriter.notifyMatchFailure(cast, "words are not unpacked to this type");
    rewriter.replaceOpWithNewOp<UnpackOp>(cast, cast.getType(), unpack.getValue(), unpack.getBits(),
                                          /*isSigned=*/false, /*isFloat=*/true);
    return success();
  }
};
} // namespace

void UnpackOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<UnpackToFloats, UnpackToOtherFloats<arith::ExtFOp>, UnpackToOtherFloats<arith::TruncFOp>>(context);
}
