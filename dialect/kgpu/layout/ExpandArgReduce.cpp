// Expands positions of extremes (argmax, argmin) into reductions of pairs (element, position).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %i = tile.arg_reduce max %v axis 1 : tensor<1x4096xf32> -> tensor<1x1xindex>
// After:  %p = positions 0, 1, ... along the axis : tensor<1x4096xi32>
//         %r:2 = tile.combine (%v, %p) axis 1 init (-inf, 2^31-1)
//             {the larger element; of equal ones, the smaller position}
//         %i = arith.index_cast %r#1
//
// On entry: tiles without layouts.
// On exit: no tile.arg_reduce is left; tile.combine takes its place. Positions have 32 bits: a tile has at most 2^20
// elements.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/ir/Walks.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUEXPANDARGREDUCE
#include "dialect/kgpu/Passes.h.inc"

namespace {
bool looksForMax(tile::ArgReduceKind kind) {
  return kind == tile::ArgReduceKind::Max || kind == tile::ArgReduceKind::UMax;
}
bool isUnsigned(tile::ArgReduceKind kind) {
  return kind == tile::ArgReduceKind::UMax || kind == tile::ArgReduceKind::UMin;
}

/// Returns the identity of the reduction: an element that no other one is worse than.
Value worst(OpBuilder &builder, Location loc, Type element, tile::ArgReduceKind kind) {
  bool max = looksForMax(kind);
  if (auto type = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    bool hasInfinity = APFloat::semanticsHasInf(semantics);
    APFloat value = hasInfinity ? APFloat::getInf(semantics, max) : APFloat::getLargest(semantics, max);
    return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(element, value));
  }
  unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  APInt value = isUnsigned(kind) ? (max ? APInt::getMinValue(width) : APInt::getMaxValue(width))
                                 : (max ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(element, value));
}

/// Returns whether `left` is ahead of `right`, and whether they are equal. A NaN is ahead of every number.
std::pair<Value, Value> compare(OpBuilder &builder, Location loc, Value left, Value right, tile::ArgReduceKind kind) {
  bool max = looksForMax(kind);
  if (isa<FloatType>(left.getType())) {
    auto test = [&](arith::CmpFPredicate predicate, Value one, Value other) -> Value {
      return arith::CmpFOp::create(builder, loc, predicate, one, other);
    };
    Value further = test(max ? arith::CmpFPredicate::UGT : arith::CmpFPredicate::ULT, left, right);
    Value ahead = arith::AndIOp::create(builder, loc, further, test(arith::CmpFPredicate::ORD, right, right));
    Value bothNan = arith::AndIOp::create(builder, loc, test(arith::CmpFPredicate::UNO, left, left),
                                          test(arith::CmpFPredicate::UNO, right, right));
    Value equal = arith::OrIOp::create(builder, loc, test(arith::CmpFPredicate::OEQ, left, right), bothNan);
    return {ahead, equal};
  }
  arith::CmpIPredicate predicate = isUnsigned(kind) ? (max ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::ult)
                                                    : (max ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::slt);
  return {arith::CmpIOp::create(builder, loc, predicate, left, right),
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, left, right)};
}

/// Returns the positions 0, 1, ... along the axis, broadcast along all other dimensions.
Value positions(OpBuilder &builder, Location loc, RankedTensorType type, int64_t axis) {
  Value line = tile::IotaOp::create(builder, loc, type.getDimSize(axis));
  Type narrow = builder.getI32Type();
  line = arith::IndexCastOp::create(builder, loc, RankedTensorType::get({type.getDimSize(axis)}, narrow), line);
  SmallVector<int64_t> shape(type.getRank(), 1);
  shape[axis] = type.getDimSize(axis);
  if (type.getRank() > 1)
    line = tile::ReshapeOp::create(builder, loc, RankedTensorType::get(shape, narrow), line);
  if (ArrayRef<int64_t>(shape) == type.getShape())
    return line;
  return tile::BroadcastOp::create(builder, loc, RankedTensorType::get(type.getShape(), narrow), line);
}

void expand(tile::ArgReduceOp op) {
  IRRewriter builder(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getValue().getType());
  int64_t axis = op.getAxis();
  Value last = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(std::numeric_limits<int32_t>::max()));
  Value inits[] = {worst(builder, loc, type.getElementType(), op.getKind()), last};
  Value inputs[] = {op.getValue(), positions(builder, loc, type, axis)};
  auto combine = tile::CombineOp::create(builder, loc, ValueRange(inputs), ValueRange(inits), axis);
  {
    OpBuilder::InsertionGuard guard(builder);
    Block &body = combine.getBody().front();
    builder.setInsertionPointToEnd(&body);
    Value left = body.getArgument(0), leftAt = body.getArgument(1);
    Value right = body.getArgument(2), rightAt = body.getArgument(3);
    auto [ahead, equal] = compare(builder, loc, left, right, op.getKind());
    Value earlier = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, leftAt, rightAt);
    Value wins = arith::OrIOp::create(builder, loc, ahead, arith::AndIOp::create(builder, loc, equal, earlier));
    Value best = arith::SelectOp::create(builder, loc, wins, left, right);
    Value where = arith::SelectOp::create(builder, loc, wins, leftAt, rightAt);
    tile::YieldOp::create(builder, loc, ValueRange{best, where});
  }
  builder.replaceOpWithNewOp<arith::IndexCastOp>(op, op.getType(), combine.getOutputs()[1]);
}

struct ExpandArgReduce final : impl::KgpuExpandArgReduceBase<ExpandArgReduce> {
  void runOnOperation() override { llvm::for_each(opsIn<tile::ArgReduceOp>(getOperation()), expand); }
};
} // namespace
} // namespace kpkg::kgpu
