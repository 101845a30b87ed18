// Merges dependent reductions, as of mean and variance or of softmax, so that both share one exchange between warps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %s = tile.reduce sum %v axis 1                   %m = %s / n
//         %d = %v - broadcast %m                           %q = tile.reduce sum (%d * %d) axis 1
// After:  %p = kgpu.partial_reduce sum %v axis 1           %n = elements of each warp
//         %e = %v - kgpu.own_part (%p / %n)                %f = kgpu.partial_reduce sum %e axis 1
//                                                          %g = kgpu.partial_reduce sum (%e * %e) axis 1
//         %P, %N, %F, %G = kgpu.share_parts %p, %n, %f, %g
//         %s = tile.reduce sum %P axis 1                   %m = %s / n
//         %D = %P / %N - broadcast %m
//         %q = tile.reduce sum (%G + 2 * %F * %D + %N * %D * %D) axis 1
//
// The squares of a warp are taken about its own mean, so no term is large compared with the result. Source: Chan,
// Golub, LeVeque: Updating Formulae and a Pairwise Algorithm for Computing Sample Variances. A select may exclude
// elements from the squares. Sums of exponentials are merged likewise:
//
// Before: %t = tile.reduce max %v axis 1
//         %q = tile.reduce sum exp(%v - broadcast %t) axis 1
// After:  %p = kgpu.partial_reduce max %v axis 1
//         %f = kgpu.partial_reduce sum exp(%v - kgpu.own_part %p) axis 1
//         %P, %F = kgpu.share_parts %p, %f
//         %t = tile.reduce max %P axis 1
//         %q = tile.reduce sum (%F * exp(%P - broadcast %t)) axis 1
//
// The pass also matches exp2((v - t) * c). A warp whose maximum is -inf uses 0 instead: all of its exponentials are 0.
//
// On entry: every tile has a layout.
// On exit: such pairs of reductions across warps are reductions within warps around one `kgpu.share_parts`, if
// whyNotWorthwhile() expects a gain.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/Slices.h"
#include "dialect/kgpu/ir/ConvertLayout.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/layout/Algebra.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUMERGEREDUCTIONS
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// A reduction `inner`, and a sum `outer` over terms of the same elements and a value that depends on `inner`.
struct Pair {
  tile::ReduceOp inner, outer;
  Operation *root = nullptr;    ///< computes the terms
  arith::SubFOp difference;     ///< of the elements and the value
  Value inside;                 ///< selects the elements that count; null if all do
  std::optional<APFloat> scale; ///< factor of the differences in exponentials
  bool isSquare() const { return isa<arith::MulFOp>(root); }
  /// Returns the broadcast that the difference subtracts, or null.
  tile::BroadcastOp centre() { return difference.getRhs().getDefiningOp<tile::BroadcastOp>(); }
};

Value withoutConversions(Value value) {
  while (auto convert = value.getDefiningOp<CvtLayoutOp>())
    value = convert.getValue();
  return value;
}

/// Returns the reduction of `elements` along the axis of `outer` that precedes it in its block.
tile::ReduceOp reductionOf(Value elements, tile::ReduceKind kind, tile::ReduceOp outer) {
  for (Operation *user : elements.getUsers()) {
    auto reduce = dyn_cast<tile::ReduceOp>(user);
    if (reduce && reduce.getKind() == kind && reduce.getAxis() == outer.getAxis() &&
        reduce->getBlock() == outer->getBlock() && reduce->isBeforeInBlock(outer))
      return reduce;
  }
  return {};
}

std::optional<APFloat> splatOf(Value value) {
  DenseElementsAttr elements;
  FloatAttr number;
  if (auto broadcast = value.getDefiningOp<tile::BroadcastOp>())
    value = broadcast.getValue();
  if (auto splat = value.getDefiningOp<tile::SplatOp>(); splat && matchPattern(splat.getValue(), m_Constant(&number)))
    return number.getValue();
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<APFloat>();
  return std::nullopt;
}

/// Matches v - broadcast t, and finds the reduction of v that precedes the outer one.
bool findInner(Pair &pair, Value difference, tile::ReduceKind kind) {
  pair.difference = difference.getDefiningOp<arith::SubFOp>();
  if (!pair.difference || !pair.centre())
    return false;
  pair.inner = reductionOf(pair.difference.getLhs(), kind, pair.outer);
  return bool(pair.inner);
}

/// Matches exp(v - broadcast t), or exp2((v - broadcast t) * c), for the maximum t of v.
std::optional<Pair> exponentials(tile::ReduceOp outer) {
  Pair pair;
  pair.outer = outer;
  pair.root = outer.getValue().getDefiningOp();
  if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(pair.root))
    return std::nullopt;
  Value argument = pair.root->getOperand(0);
  if (auto product = argument.getDefiningOp<arith::MulFOp>()) {
    pair.scale = splatOf(product.getRhs());
    if (!pair.scale || pair.scale->isNegative())
      return std::nullopt;
    argument = product.getLhs();
  }
  if (!findInner(pair, argument, tile::ReduceKind::Max) ||
      withoutConversions(pair.centre().getValue()) != pair.inner.getResult())
    return std::nullopt;
  return pair;
}

/// Matches the square of v - broadcast m, where m depends on the sum of v. A select may replace the difference by 0.
std::optional<Pair> squares(tile::ReduceOp outer) {
  Pair pair;
  pair.outer = outer;
  pair.root = outer.getValue().getDefiningOp<arith::MulFOp>();
  if (!pair.root || pair.root->getOperand(0) != pair.root->getOperand(1))
    return std::nullopt;
  Value base = pair.root->getOperand(0);
  if (auto select = base.getDefiningOp<arith::SelectOp>()) {
    if (!matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
      return std::nullopt;
    pair.inside = select.getCondition();
    base = select.getTrueValue();
  }
  llvm::SetVector<Operation *> slice;
  if (!findInner(pair, base, tile::ReduceKind::Sum) || failed(getBackwardSlice(pair.centre().getOperation(), &slice)) ||
      !slice.contains(pair.inner))
    return std::nullopt;
  return pair;
}

std::optional<Pair> findPair(tile::ReduceOp outer) {
  Type element = getElementTypeOrSelf(outer.getType());
  if (outer.getKind() != tile::ReduceKind::Sum || !isa<Float32Type, Float64Type>(element) ||
      isWithinWarp(layoutOf(outer.getValue()), outer.getAxis()))
    return std::nullopt;
  std::optional<Pair> pair = exponentials(outer);
  return pair ? pair : squares(outer);
}

/// Returns whether saving an exchange outweighs the cost of the warps' own sums (measured on an H200):
///  * Exponentials that only their sum uses are computed once either way. It always pays.
///  * Other exponentials are computed twice. That costs less than an exchange in persistent clusters, where nothing
///    hides the exchange.
///  * Squares need counts and differences of their own. For elements of 16 bits loads are too fast to hide that, and
///    within a CTA a barrier is faster.
WhyNot whyNotWorthwhile(const Pair &pair) {
  tile::ReduceOp outer = pair.outer, inner = pair.inner;
  if (!pair.isSquare() && pair.root->hasOneUse())
    return std::nullopt;
  bool isAcrossCtas = layoutOf(outer.getValue()).bitsAlong(layout::Part::Block, outer.getAxis()) != 0;
  bool isWidened = inner.getValue().getDefiningOp<arith::ExtFOp>() != nullptr;
  if (!isAcrossCtas)
    return "one block holds the row, and an exchange within it costs less than sums of each warp";
  if (pair.isSquare() && isWidened)
    return "elements of 16 bits load too fast to hide sums of each warp";
  if (!pair.isSquare() && !getLaunch(outer->getParentOfType<tile::KernelOp>()).persistent)
    return "the exponentials, which others use too, would be computed twice";
  return std::nullopt;
}

/// Moves `value` and the ops that it needs before `place`; returns false if that is impossible.
bool bringBefore(Value value, Operation *place) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != place->getBlock() || op->isBeforeInBlock(place))
    return true;
  SetVector<Operation *> slice =
      sliceIn(*place->getBlock(), value, [&](Operation *needed) { return !needed->isBeforeInBlock(place); });
  if (!llvm::all_of(slice, isMemoryEffectFree) || slice.contains(place))
    return false;
  for (Operation *needed : slice)
    needed->moveBefore(place);
  return true;
}

class Merging {
public:
  Merging(Pair found, layout::Layout gather)
      : pair(std::move(found)), builder(pair.inner), loc(pair.outer.getLoc()), axis(pair.outer.getAxis()),
        gather(std::move(gather)) {}

  void run() {
    Value elements = pair.inner.getValue();
    Value part = PartialReduceOp::create(builder, loc, pair.inner.getKind(), elements, axis);
    if (pair.isSquare())
      mergeSquares(elements, part);
    else
      mergeExponentials(elements, part);
    pair.inner.erase();
    pair.outer.erase();
  }

private:
  Value constant(double value, Type tile) {
    Attribute number = builder.getFloatAttr(getElementTypeOrSelf(tile), value);
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(cast<ShapedType>(tile), number));
  }
  Value constant(const APFloat &value, Type tile) {
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(cast<ShapedType>(tile), value));
  }
  Value partOfSum(Value terms) { return PartialReduceOp::create(builder, loc, tile::ReduceKind::Sum, terms, axis); }
  Value ownPart(Value part, Type tile) { return OwnPartOp::create(builder, loc, tile, part, axis); }

  /// Shares all partial results by one exchange. The first one is that of the inner reduction, which is replaced.
  ValueRange share(ValueRange parts) {
    SmallVector<Type> types;
    for (Value part : parts)
      types.push_back(withLayout(part.getType(), gather));
    ValueRange all = SharePartsOp::create(builder, loc, types, parts, axis).getOutputs();
    replace(pair.inner, tile::ReduceOp::create(builder, loc, wholeType(), pair.inner.getKind(), all[0], axis));
    return all;
  }
  RankedTensorType wholeType() { return withLayout(pair.outer.getType(), llvm::cantFail(layout::slice(gather, axis))); }
  void replace(tile::ReduceOp op, Value whole) { op.replaceAllUsesWith(converted(builder, loc, whole, op.getType())); }
  /// Broadcasts `value`, which has extent 1 along the axis, to the shape of the shared partial results.
  Value spread(Value value, Type tile) {
    return tile::BroadcastOp::create(builder, loc, tile, converted(builder, loc, value, wholeType()));
  }
  void replaceOuter(Value terms) {
    replace(pair.outer, tile::ReduceOp::create(builder, loc, wholeType(), tile::ReduceKind::Sum, terms, axis));
  }

  /// Returns the exponential of `value` minus `centre`.
  Value exponential(Value value, Value centre) {
    Value argument = arith::SubFOp::create(builder, loc, value, centre, pair.difference.getFastmath());
    if (pair.scale)
      argument = arith::MulFOp::create(builder, loc, argument, constant(*pair.scale, argument.getType()));
    return builder
        .create(loc, pair.root->getName().getIdentifier(), argument, argument.getType(), pair.root->getAttrs())
        ->getResult(0);
  }

  void mergeExponentials(Value elements, Value part) {
    Value isEmpty = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, part,
                                          constant(-std::numeric_limits<double>::infinity(), part.getType()));
    Value centre = arith::SelectOp::create(builder, loc, isEmpty, constant(0, part.getType()), part);
    ValueRange all = share({part, partOfSum(exponential(elements, ownPart(centre, elements.getType())))});
    builder.setInsertionPoint(pair.outer);
    Value top = spread(pair.centre().getValue(), all[0].getType());
    replaceOuter(arith::MulFOp::create(builder, loc, all[1], exponential(all[0], top)));
  }

  void mergeSquares(Value elements, Value part) {
    Type type = elements.getType();
    Value counted = constant(1, type), zero = constant(0, type);
    if (pair.inside)
      counted = arith::SelectOp::create(builder, loc, pair.inside, counted, zero);
    Value count = partOfSum(counted);
    Value difference = arith::SubFOp::create(builder, loc, elements, ownPart(centreOf(part, count), type),
                                             pair.difference.getFastmath());
    if (pair.inside)
      difference = arith::SelectOp::create(builder, loc, pair.inside, difference, zero);
    Value terms =
        arith::MulFOp::create(builder, loc, difference, difference, cast<arith::MulFOp>(pair.root).getFastmath());
    ValueRange all = share({part, count, partOfSum(difference), partOfSum(terms)});
    builder.setInsertionPoint(pair.outer);
    // The sum of (d + e)^2, for differences d from the warp's mean and its difference e from the mean of all.
    Value mean = spread(pair.centre().getValue(), all[0].getType());
    Value further = arith::SubFOp::create(builder, loc, centreOf(all[0], all[1]), mean);
    Value counts = arith::MulFOp::create(builder, loc, all[1], further);
    Value both = arith::AddFOp::create(builder, loc, counts, arith::AddFOp::create(builder, loc, all[2], all[2]));
    replaceOuter(arith::AddFOp::create(builder, loc, all[3], arith::MulFOp::create(builder, loc, both, further)));
  }

  Value centreOf(Value sum, Value count) {
    Value divisor = arith::MaximumFOp::create(builder, loc, count, constant(1, count.getType()));
    return arith::DivFOp::create(builder, loc, sum, divisor,
                                 arith::FastMathFlags::afn); // any nearby value suffices, if both uses get the same one
  }

  Pair pair;
  OpBuilder builder;
  Location loc;
  unsigned axis;
  layout::Layout gather;
};

constexpr Optimisation kMerging{"kgpu-merge-reductions", "dependent reductions as one"};

struct MergeReductions final : impl::KgpuMergeReductionsBase<MergeReductions> {
  void runOnOperation() override {
    for (auto outer : opsIn<tile::ReduceOp>(getOperation())) {
      std::optional<Pair> pair = findPair(outer);
      if (!pair)
        continue;
      WhyNot why = layoutOf(pair->inner.getValue()) == layoutOf(outer.getValue())
                       ? whyNotWorthwhile(*pair)
                       : WhyNot("threads hold other elements of its tile than of the reduction before");
      if (why) {
        remarkRefused(outer, kMerging, *why);
        continue;
      }
      std::optional<layout::Layout> gather =
          llvm::expectedToOptional(gatherLayout(layoutOf(outer.getValue()), outer.getAxis()));
      if (!gather)
        continue; // the expansion of the reductions reports the error
      if (pair->inside && !bringBefore(pair->inside, pair->inner)) {
        remarkRefused(outer, kMerging, "which elements count depends on the reduction before");
        continue;
      }
      remarkApplied(outer, kMerging, "this reduction and the one that it depends on share an exchange between warps");
      Merging(std::move(*pair), std::move(*gather)).run();
    }
  }
};
} // namespace
} // namespace kpkg::kgpu
