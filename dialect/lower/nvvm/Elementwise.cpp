// Emits elementwise ops: one scalar op for each register.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/math/NarrowFloats.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/tile/transforms/IndexFacts.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

LogicalResult Emitter::emitConstant(arith::ConstantOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type) {
    define(op, {builder.clone(*op)->getResult(0)});
    return success();
  }
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense || !dense.isSplat())
    return op.emitOpError("is no splat, which GPUs do not support yet");
  Value value = arith::ConstantOp::create(builder, type.getElementType(), dense.getSplatValue<TypedAttr>());
  define(op, TileRegisters(kgpu::layoutOf(op.getResult()).registers(), value));
  return success();
}

namespace {
/// Widens a bf16 by a shift, which is cheaper than the conversion instruction: bf16 is the upper half of f32.
Value widenBFloat(ImplicitLocOpBuilder &builder, Value value) {
  Type i32 = builder.getI32Type();
  Value bits = arith::ExtUIOp::create(builder, i32, arith::BitcastOp::create(builder, builder.getI16Type(), value));
  Value word = arith::ShLIOp::create(builder, bits, constantOf(builder, 16));
  return arith::BitcastOp::create(builder, builder.getF32Type(), word);
}

Value extend(ImplicitLocOpBuilder &builder, Value value, Type to) {
  Type f32 = builder.getF32Type();
  if (!value.getType().isBF16())
    return arith::ExtFOp::create(builder, to, value);
  Value wide = widenBFloat(builder, value);
  return to == f32 ? wide : arith::ExtFOp::create(builder, to, wide).getResult();
}
} // namespace

namespace {
/// Returns a mask of the low index bits that do not affect `index < limit`, because the limit is a multiple of 2^n.
/// Returns 0 for other ops.
int64_t idleIndexBits(Operation *op) {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare || !getElementTypeOrSelf(compare.getLhs().getType()).isIndex())
    return 0;
  using Predicate = arith::CmpIPredicate;
  if (!llvm::is_contained({Predicate::slt, Predicate::sge, Predicate::ult, Predicate::uge}, compare.getPredicate()))
    return 0;
  auto limit = compare.getRhs().getDefiningOp<tile::SplatOp>();
  return limit ? tile::divisorOf(limit.getValue()) - 1 : 0;
}
} // namespace

/// Rounds adjacent elements in pairs, with one instruction each. LLVM would not pair roundings whose results are packed
/// behind a barrier.
static SmallVector<Value> roundedInPairs(ImplicitLocOpBuilder &builder, ValueRange wide, Type element) {
  SmallVector<Value> rounded;
  Type narrowPair = VectorType::get(2, element), widePair = VectorType::get(2, builder.getF32Type());
  for (size_t i = 0; i < wide.size(); i += 2) {
    Value pair = LLVM::PoisonOp::create(builder, widePair);
    for (size_t half : {0, 1})
      pair = LLVM::InsertElementOp::create(builder, pair, wide[i + half], constantOf(builder, half));
    pair = arith::TruncFOp::create(builder, narrowPair, pair);
    for (size_t half : {0, 1})
      rounded.push_back(LLVM::ExtractElementOp::create(builder, pair, constantOf(builder, half)));
  }
  return rounded;
}

/// Returns the operand of a clamp to the finite range of f8E4M3FN before the rounding. Returns null without such a
/// clamp: the instructions saturate, but casts do not.
static Value clamped(arith::TruncFOp truncate) {
  auto isBound = [](Value value, double bound) {
    DenseElementsAttr elements;
    return matchPattern(value, m_Constant(&elements)) && elements.isSplat() &&
           isa<FloatType>(elements.getElementType()) && elements.getSplatValue<APFloat>().convertToDouble() == bound;
  };
  auto above = truncate.getIn().getDefiningOp<arith::MaximumFOp>();
  auto below = above ? above.getLhs().getDefiningOp<arith::MinimumFOp>() : arith::MinimumFOp();
  constexpr double largest = 448; // Of f8E4M3FN.
  return below && isBound(above.getRhs(), -largest) && isBound(below.getRhs(), largest) ? below.getLhs() : Value();
}

/// Rounds adjacent elements to f8E4M3FN, two with one instruction. Four are rounded at once, because ptxas then merges
/// them in the second instruction. It does not do so across a branch.
static SmallVector<Value> saturatedInPairs(ImplicitLocOpBuilder &builder, ValueRange wide, Type element) {
  unsigned count = wide.size() % 4 == 0 ? 4 : 2;
  Type byte = builder.getI8Type(), word = builder.getIntegerType(8 * count);
  SmallVector<Value> rounded;
  for (size_t i = 0; i < wide.size(); i += count) {
    Value together =
        count == 4 ? ptx::roundFourToE4M3(builder, wide.slice(i, 4)) : roundToE4M3(builder, wide[i], wide[i + 1]);
    for (unsigned j = 0; j < count; ++j) {
      Value shifted =
          j == 0 ? together
                 : Value(arith::ShRUIOp::create(builder, together, arith::ConstantIntOp::create(builder, word, 8 * j)));
      rounded.push_back(arith::BitcastOp::create(builder, element, arith::TruncIOp::create(builder, byte, shifted)));
    }
  }
  return rounded;
}

/// Returns whether adjacent elements of a sum, difference or product of narrow floats can be computed in pairs. The
/// results are those of f32 arithmetic with one more rounding: f32 has more than twice the bits of either format.
static bool isOfPairs(Operation *op, const kgpu::TargetModel &target) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return type && (type.getElementType().isBF16() || type.getElementType().isF16()) && target.hasBFloatArithmetic &&
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op) && kgpu::layoutOf(type).registers() % 2 == 0;
}

Emitter::TileRegisters Emitter::computedInPairs(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Type pairType = VectorType::get(2, type.getElementType());
  TileRegisters values;
  for (unsigned reg = 0, count = kgpu::layoutOf(type).registers(); reg < count; reg += 2) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      ValueRange held = registersOf(operand);
      Value pair = LLVM::PoisonOp::create(builder, pairType);
      for (unsigned half : {0, 1})
        pair = LLVM::InsertElementOp::create(builder, pair, held[held.size() == 1 ? 0 : reg + half],
                                             constantOf(builder, half));
      operands.push_back(pair);
    }
    // Flags would permit to fuse ops, whose results are rounded one by one.
    OperationState state(builder.getLoc(), op->getName(), operands, {pairType});
    Value pair = builder.create(state)->getResult(0);
    for (unsigned half : {0, 1})
      values.push_back(LLVM::ExtractElementOp::create(builder, pair, constantOf(builder, half)));
  }
  return values;
}

LogicalResult Emitter::emitElementwise(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0)
    return op->emitOpError("is not supported on GPUs yet");
  if (isOfPairs(op, kgpu::targetOf(kernel))) {
    define(op->getResult(0), computedInPairs(op));
    return success();
  }
  if (auto truncate = dyn_cast<arith::TruncFOp>(op);
      truncate && warpgroup && isa<RankedTensorType>(truncate.getType())) {
    Type from = getElementTypeOrSelf(truncate.getIn().getType()), to = getElementTypeOrSelf(truncate.getType());
    ValueRange wide = registersOf(truncate.getIn());
    if (from.isF32() && (to.isBF16() || to.isF16()) && !truncate.getRoundingmode() && wide.size() % 2 == 0) {
      define(truncate.getResult(), TileRegisters(roundedInPairs(builder, wide, to)));
      return success();
    }
    if (Value inside =
            isa<Float8E4M3FNType>(to) && from.isF32() && wide.size() % 2 == 0 ? clamped(truncate) : Value()) {
      define(truncate.getResult(), TileRegisters(saturatedInPairs(builder, registersOf(inside), to)));
      return success();
    }
  }
  // Adjacent elements on the same side of every possible limit share their comparison.
  int64_t idleBits = idleIndexBits(op);
  Value result = op->getResult(0);
  auto tile = dyn_cast<RankedTensorType>(result.getType());
  Type element = tile ? tile.getElementType() : result.getType();
  unsigned count = tile ? kgpu::layoutOf(result).registers() : 1;

  auto scalarOp = [&](ArrayRef<Value> operands) -> Value {
    if (isa<arith::ExtFOp>(op))
      return extend(builder, operands.front(), element);
    // Arithmetic on narrow floats is computed in f32 and rounded once.
    bool widens =
        isNarrowFloat(element) &&
        !isa<arith::TruncFOp, arith::ExtFOp, arith::SelectOp, arith::BitcastOp, arith::SIToFPOp, arith::UIToFPOp>(op);
    bool compares = isa<arith::CmpFOp>(op) && isNarrowFloat(operands.front().getType());
    SmallVector<Value> given(operands);
    if (idleBits != 0)
      given[0] = arith::AndIOp::create(builder, given[0], arith::ConstantIndexOp::create(builder, ~idleBits));
    Type f32 = builder.getF32Type();
    if (widens || compares)
      for (Value &operand : given)
        if (isNarrowFloat(operand.getType()))
          operand = extend(builder, operand, f32);
    // Conversions from 64-bit integers run at a fraction of the rate of those from 32 bits.
    if (isa<arith::SIToFPOp>(op) && given[0].getType().isInteger(64) && tile::fitsInt32(op->getOperand(0)))
      given[0] = arith::TruncIOp::create(builder, builder.getI32Type(), given[0]);
    OperationState state(builder.getLoc(), op->getName(), given, {widens ? f32 : element}, op->getAttrs());
    Value made = builder.create(state)->getResult(0);
    return widens ? arith::TruncFOp::create(builder, element, made).getResult() : made;
  };

  TileRegisters values;
  SmallVector<Value> first;
  for (unsigned reg = 0; reg < count; ++reg) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      ValueRange held = registersOf(operand);
      if (held.size() != 1 && held.size() != count)
        return op->emitOpError("has operands in different layouts");
      operands.push_back(held.size() == 1 ? held.front() : held[reg]);
    }
    // Splats repeat their operands, so one computation is enough.
    bool isRepeated = reg != 0 && operands == first;
    values.push_back(isRepeated ? values.front() : scalarOp(operands));
    if (reg == 0)
      first = std::move(operands);
  }
  define(result, std::move(values));
  return success();
}

} // namespace kpkg::lower::nvvm
