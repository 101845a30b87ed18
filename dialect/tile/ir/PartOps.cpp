// Implements ops that take tiles apart and put them together: verifiers, folds and canonicalisation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/SplatThrough.h"
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace kpkg::tile;

static RankedTensorType tileOf(Value value) { return cast<RankedTensorType>(value.getType()); }

LogicalResult ExtractOp::verify() {
  ArrayRef<int64_t> from = tileOf(getValue()).getShape(), to = tileOf(getResult()).getShape();
  if (from.size() != to.size() || getOffsets().size() != from.size() || getSteps().size() != from.size())
    return emitOpError() << "needs an offset and a step for each of the " << from.size()
                         << " dimensions, which the result keeps";
  for (auto [dim, offset, step] : llvm::enumerate(getOffsets(), getSteps())) {
    int64_t last = offset + step * (to[dim] - 1);
    if (step == 0 || std::min(offset, last) < 0 || std::max(offset, last) >= from[dim])
      return emitOpError() << "takes elements " << offset << " to " << last << " by steps of " << step
                           << " in dimension " << dim << ", which has extent " << from[dim];
  }
  return success();
}

void JoinOp::build(OpBuilder &builder, OperationState &state, ValueRange parts, int64_t axis) {
  SmallVector<int64_t> shape(tileOf(parts.front()).getShape());
  for (Value part : parts.drop_front())
    shape[axis] += tileOf(part).getDimSize(axis);
  build(builder, state, tileOf(parts.front()).clone(shape), parts, axis);
}

LogicalResult JoinOp::verify() {
  RankedTensorType type = tileOf(getResult());
  int64_t axis = getAxis(), sum = 0;
  if (getParts().empty() || axis >= type.getRank())
    return emitOpError() << "needs a tile, and an axis below " << type.getRank();
  for (Value part : getParts()) {
    if (tileOf(part).getRank() != type.getRank())
      return emitOpError() << "joins tiles of one rank, not " << part.getType() << " to " << type;
    for (auto [dim, extents] : llvm::enumerate(llvm::zip(tileOf(part).getShape(), type.getShape())))
      if (int64_t(dim) != axis && std::get<0>(extents) != std::get<1>(extents))
        return emitOpError() << "keeps the extents outside of axis " << axis << ", but joins " << part.getType()
                             << " to " << type;
    sum += tileOf(part).getDimSize(axis);
  }
  if (sum != type.getDimSize(axis))
    return emitOpError() << "has " << sum << " elements along axis " << axis << ", not " << type.getDimSize(axis);
  return success();
}

OpFoldResult ExtractOp::fold(FoldAdaptor adaptor) {
  ArrayRef<int64_t> shape = tileOf(getResult()).getShape();
  if (getValue().getType() == getType() && llvm::all_of(llvm::zip(shape, getSteps()), [](auto dim) {
        return std::get<0>(dim) == 1 || std::get<1>(dim) == 1;
      }))
    return getValue();
  auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getValue());
  if (dense && dense.isSplat())
    return dense.resizeSplat(cast<ShapedType>(getType()));
  if (auto inner = getValue().getDefiningOp<ExtractOp>()) {
    SmallVector<int64_t> offsets, steps;
    for (auto [offset, step, innerOffset, innerStep] :
         llvm::zip_equal(getOffsets(), getSteps(), inner.getOffsets(), inner.getSteps())) {
      offsets.push_back(innerOffset + innerStep * offset);
      steps.push_back(innerStep * step);
    }
    getValueMutable().assign(inner.getValue());
    setOffsets(offsets);
    setSteps(steps);
    return getResult();
  }
  return {};
}

OpFoldResult JoinOp::fold(FoldAdaptor adaptor) {
  if (getParts().size() == 1 && getParts().front().getType() == getType())
    return getParts().front();
  auto first = dyn_cast_or_null<DenseElementsAttr>(adaptor.getParts().front());
  bool isUniform =
      first && first.isSplat() && llvm::all_of(adaptor.getParts(), [&](Attribute part) {
        auto dense = dyn_cast_or_null<DenseElementsAttr>(part);
        return dense && dense.isSplat() && dense.getSplatValue<Attribute>() == first.getSplatValue<Attribute>();
      });
  return isUniform ? first.resizeSplat(cast<ShapedType>(getType())) : OpFoldResult();
}

/// Returns whether the tiles of an op have layouts. Then their types cannot be derived from others.
static bool hasLayouts(Operation *op) { return tileOf(op->getResult(0)).getEncoding() != nullptr; }

/// Returns the bits of an element.
static int64_t bitsOf(RankedTensorType type) {
  Type element = type.getElementType();
  return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
}

/// Returns whether accesses to `part` read or write whole sectors of memory, if `whole` is cut to it.
static bool keepsSectors(RankedTensorType part, RankedTensorType whole) {
  constexpr int64_t sectorBits = 256;
  int64_t last = part.getRank() - 1;
  return part.getDimSize(last) == whole.getDimSize(last) || part.getDimSize(last) * bitsOf(part) >= sectorBits;
}

/// Returns the coordinates `offsets + distances` in memory.
static SmallVector<Value> moved(PatternRewriter &rewriter, Location loc, ValueRange offsets,
                                ArrayRef<int64_t> distances) {
  SmallVector<Value> result;
  for (auto [offset, distance] : llvm::zip_equal(offsets, distances)) {
    if (distance == 0) {
      result.push_back(offset);
      continue;
    }
    Value by = arith::ConstantIndexOp::create(rewriter, loc, distance);
    result.push_back(rewriter.createOrFold<arith::AddIOp>(loc, offset, by));
  }
  return result;
}

/// Returns whether all elements of a tile are the same constant or scalar.
static bool isUniform(Value tile) {
  return tile.getDefiningOp<SplatOp>() || matchPattern(tile, m_Constant<SplatElementsAttr>(nullptr));
}

/// Returns the only tile that an elementwise op computes its result from, or null. Uniform tiles do not count.
static Value sourceOf(Operation *op) {
  if (!op || !op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1 || !isPure(op) ||
      !isa<RankedTensorType>(op->getResult(0).getType()))
    return {};
  Value source;
  for (Value operand : op->getOperands()) {
    if (!isa<RankedTensorType>(operand.getType()) || isUniform(operand) || operand == source)
      continue;
    if (source)
      return {};
    source = operand;
  }
  return source;
}

/// Creates the elementwise op for tiles of another shape. `change` gives the operands in this shape.
static Value reshaped(PatternRewriter &rewriter, Operation *op, ArrayRef<int64_t> shape,
                      llvm::function_ref<Value(Value)> change) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType()) ? change(operand) : operand);
  OperationState state(op->getLoc(), op->getName(), operands, {tileOf(op->getResult(0)).clone(shape)}, op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return rewriter.create(state)->getResult(0);
}

namespace {
/// Takes a part of the operand of an elementwise op, if only parts of its result are read.
struct ExtractOfElementwise final : OpRewritePattern<ExtractOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExtractOp op, PatternRewriter &rewriter) const override {
    Operation *elementwise = op.getValue().getDefiningOp();
    if (hasLayouts(op) || !sourceOf(elementwise))
      return rewriter.notifyMatchFailure(op, "operand is not computed from one tile without a layout");
    int64_t read = 0;
    for (Operation *user : elementwise->getUsers()) {
      if (!isa<ExtractOp>(user))
        return rewriter.notifyMatchFailure(op, "the tile is needed as a whole");
      read += tileOf(user->getResult(0)).getNumElements();
    }
    if (read > tileOf(op.getValue()).getNumElements())
      return rewriter.notifyMatchFailure(op, "parts would be computed several times");
    rewriter.setInsertionPoint(elementwise); // A loop may take the part.
    ArrayRef<int64_t> shape = tileOf(op.getResult()).getShape();
    Value part = reshaped(rewriter, elementwise, shape, [&](Value operand) -> Value {
      return ExtractOp::create(rewriter, op.getLoc(), tileOf(operand).clone(shape), operand, op.getOffsets(),
                               op.getSteps());
    });
    rewriter.replaceOp(op, part);
    return success();
  }
};

/// Computes the parts before they are joined, if they become no wider. Stores of the join may take the parts then.
struct ElementwiseOfJoin final : OpRewritePattern<JoinOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(JoinOp op, PatternRewriter &rewriter) const override {
    Operation *user = op->hasOneUse() ? *op->user_begin() : nullptr;
    if (hasLayouts(op) || sourceOf(user) != op.getResult() ||
        bitsOf(tileOf(user->getResult(0))) > bitsOf(tileOf(op.getResult())))
      return rewriter.notifyMatchFailure(op, "no elementwise op alone reads it, or it becomes wider");
    rewriter.setInsertionPoint(user);
    SmallVector<Value> parts;
    for (Value part : op.getParts()) {
      ArrayRef<int64_t> shape = tileOf(part).getShape();
      parts.push_back(reshaped(rewriter, user, shape, [&](Value operand) -> Value {
        if (operand == op.getResult())
          return part;
        SmallVector<int64_t> zeros(shape.size(), 0), ones(shape.size(), 1);
        return ExtractOp::create(rewriter, op.getLoc(), tileOf(operand).clone(shape), operand, zeros, ones);
      }));
    }
    rewriter.replaceOpWithNewOp<JoinOp>(user, user->getResult(0).getType(), parts, op.getAxis());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Takes a part of a tile before it is broadcast.
struct ExtractOfBroadcast final : OpRewritePattern<ExtractOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExtractOp op, PatternRewriter &rewriter) const override {
    auto broadcast = op.getValue().getDefiningOp<BroadcastOp>();
    if (!broadcast || hasLayouts(op))
      return rewriter.notifyMatchFailure(op, "operand is not a broadcast without a layout");
    RankedTensorType small = tileOf(broadcast.getValue());
    SmallVector<int64_t> offsets(op.getOffsets()), steps(op.getSteps()), shape(tileOf(op.getResult()).getShape());
    for (auto [dim, extent] : llvm::enumerate(small.getShape()))
      if (extent == 1)
        offsets[dim] = 0, steps[dim] = 1, shape[dim] = 1;
    Value part =
        ExtractOp::create(rewriter, op.getLoc(), small.clone(shape), broadcast.getValue(), offsets, steps).getResult();
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), part);
    return success();
  }
};

/// Takes elements of one part of a join from that part.
struct ExtractOfJoin final : OpRewritePattern<ExtractOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExtractOp op, PatternRewriter &rewriter) const override {
    auto join = op.getValue().getDefiningOp<JoinOp>();
    if (!join || hasLayouts(op))
      return rewriter.notifyMatchFailure(op, "operand is not a join without a layout");
    int64_t axis = join.getAxis(), begin = 0;
    int64_t first = op.getOffsets()[axis];
    int64_t last = first + op.getSteps()[axis] * (tileOf(op.getResult()).getDimSize(axis) - 1);
    for (Value part : join.getParts()) {
      int64_t end = begin + tileOf(part).getDimSize(axis);
      if (std::min(first, last) >= begin && std::max(first, last) < end) {
        SmallVector<int64_t> offsets(op.getOffsets());
        offsets[axis] -= begin;
        rewriter.replaceOpWithNewOp<ExtractOp>(op, op.getType(), part, offsets, op.getSteps());
        return success();
      }
      begin = end;
    }
    return rewriter.notifyMatchFailure(op, "the elements lie in several parts");
  }
};

/// Loads the parts of a tile of which only parts are read, so that they need not be moved between threads.
struct ExtractOfLoad final : OpRewritePattern<ExtractOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExtractOp op, PatternRewriter &rewriter) const override {
    auto load = op.getValue().getDefiningOp<LoadOp>();
    if (!load || hasLayouts(op))
      return rewriter.notifyMatchFailure(op, "operand is not a load without a layout");
    int64_t read = 0;
    for (Operation *user : load->getUsers()) {
      auto other = dyn_cast<ExtractOp>(user);
      if (!other || llvm::any_of(other.getSteps(), [](int64_t step) { return step != 1; }) ||
          !keepsSectors(tileOf(other.getResult()), tileOf(load.getResult())))
        return rewriter.notifyMatchFailure(op, "the tile is needed as a whole, or in parts that share sectors");
      read += tileOf(other.getResult()).getNumElements();
    }
    if (read > tileOf(load.getResult()).getNumElements())
      return rewriter.notifyMatchFailure(op, "parts would be loaded several times");
    rewriter.setInsertionPoint(load);
    SmallVector<Value> offsets = moved(rewriter, load.getLoc(), load.getOffsets(), op.getOffsets());
    Value part =
        LoadOp::create(rewriter, load.getLoc(), op.getType(), load.getView(), offsets, load.getFill()).getResult();
    rewriter.replaceOp(op, part);
    return success();
  }
};

/// Puts the parts of joined tiles along the same axis directly into the join.
struct JoinOfJoins final : OpRewritePattern<JoinOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(JoinOp op, PatternRewriter &rewriter) const override {
    SmallVector<Value> parts;
    for (Value part : op.getParts()) {
      auto inner = part.getDefiningOp<JoinOp>();
      if (inner && inner.getAxis() == op.getAxis() && inner->hasOneUse())
        llvm::append_range(parts, inner.getParts());
      else
        parts.push_back(part);
    }
    if (parts.size() == op.getParts().size() || hasLayouts(op))
      return rewriter.notifyMatchFailure(op, "no part is a join along this axis");
    rewriter.replaceOpWithNewOp<JoinOp>(op, op.getType(), parts, op.getAxis());
    return success();
  }
};

/// Takes parts that follow each other in one tile as one part.
struct JoinOfNeighbours final : OpRewritePattern<JoinOp> {
  using OpRewritePattern::OpRewritePattern;

  static bool follow(ExtractOp left, ExtractOp right, int64_t axis) {
    if (!left || !right || left.getValue() != right.getValue() || left.getSteps() != right.getSteps())
      return false;
    for (auto [dim, from, to] : llvm::enumerate(left.getOffsets(), right.getOffsets())) {
      int64_t distance = int64_t(dim) == axis ? left.getSteps()[dim] * tileOf(left.getResult()).getDimSize(dim) : 0;
      if (from + distance != to)
        return false;
    }
    return true;
  }

  LogicalResult matchAndRewrite(JoinOp op, PatternRewriter &rewriter) const override {
    if (hasLayouts(op))
      return rewriter.notifyMatchFailure(op, "the parts have layouts");
    int64_t axis = op.getAxis();
    for (unsigned i = 1; i < op.getParts().size(); ++i) {
      auto left = op.getParts()[i - 1].getDefiningOp<ExtractOp>(), right = op.getParts()[i].getDefiningOp<ExtractOp>();
      if (!follow(left, right, axis))
        continue;
      SmallVector<int64_t> shape(tileOf(left.getResult()).getShape());
      shape[axis] += tileOf(right.getResult()).getDimSize(axis);
      Value both = ExtractOp::create(rewriter, op.getLoc(), tileOf(left.getResult()).clone(shape), left.getValue(),
                                     left.getOffsets(), left.getSteps());
      SmallVector<Value> parts(op.getParts());
      parts[i - 1] = both;
      parts.erase(parts.begin() + i);
      rewriter.replaceOpWithNewOp<JoinOp>(op, op.getType(), parts, axis);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no parts follow each other in one tile");
  }
};

/// Stores the parts of a tile that is only stored, so that they need not be moved between threads.
struct StoreOfJoin final : OpRewritePattern<JoinOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(JoinOp op, PatternRewriter &rewriter) const override {
    auto store = op->hasOneUse() ? dyn_cast<StoreOp>(*op->user_begin()) : StoreOp();
    bool fits = store && !hasLayouts(op) && llvm::all_of(op.getParts(), [&](Value part) {
                  return keepsSectors(tileOf(part), tileOf(op.getResult()));
                });
    if (!fits)
      return rewriter.notifyMatchFailure(op, "it is not only stored, or its parts share sectors");
    SmallVector<int64_t> distances(tileOf(op.getResult()).getRank(), 0);
    rewriter.setInsertionPoint(store);
    for (Value part : op.getParts()) {
      SmallVector<Value> offsets = moved(rewriter, store.getLoc(), store.getOffsets(), distances);
      StoreOp::create(rewriter, store.getLoc(), part, store.getView(), offsets);
      distances[op.getAxis()] += tileOf(part).getDimSize(op.getAxis());
    }
    rewriter.eraseOp(store);
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void ExtractOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ExtractOfElementwise, SplatThrough<ExtractOp>, ExtractOfBroadcast, ExtractOfJoin, ExtractOfLoad>(
      context);
}
void JoinOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ElementwiseOfJoin, JoinOfJoins, JoinOfNeighbours, StoreOfJoin>(context);
}
