// Emits the steps of reductions: neutral values, accumulation, reduction across lanes, repeated elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "dialect/lower/math/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using kpkg::tile::ReduceKind;

namespace kpkg::lower::cpu {

/// Narrow floats accumulate in f32 and are rounded once at the end.
Type KernelEmitter::accumulatorElement(Type element) {
  return isNarrowFloat(element) ? Type(builder.getF32Type()) : element;
}

Value KernelEmitter::toAccumulator(Value value, Type element) {
  return isNarrowFloat(element) ? extendToF32(builder, loc, value, element) : value;
}

Value KernelEmitter::fromAccumulator(Value value, Type element) {
  return isNarrowFloat(element) ? roundToNarrow(builder, loc, value, element) : value;
}

Value KernelEmitter::neutral(ReduceKind kind, Type type) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attribute;
  if (auto real = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = real.getFloatSemantics();
    APFloat value = APFloat::getZero(semantics, kind == ReduceKind::Sum); // -0 + x is x, also for x = -0.
    if (kind == ReduceKind::Prod)
      value = APFloat::getOne(semantics);
    if (kind == ReduceKind::Max || kind == ReduceKind::Min)
      value = APFloat::getInf(semantics, kind == ReduceKind::Max);
    attribute = FloatAttr::get(element, value);
  } else {
    unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
    APInt value = APInt::getZero(width);
    switch (kind) {
    case ReduceKind::Prod:
      value = APInt(width, 1);
      break;
    case ReduceKind::Max:
      value = APInt::getSignedMinValue(width);
      break;
    case ReduceKind::Min:
      value = APInt::getSignedMaxValue(width);
      break;
    case ReduceKind::UMin:
    case ReduceKind::And:
      value = APInt::getAllOnes(width);
      break;
    default:
      break;
    }
    attribute = IntegerAttr::get(element, value);
  }
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  return constant(attribute);
}

Value KernelEmitter::accumulate(ReduceKind kind, Value a, Value b) {
  bool real = isa<FloatType>(getElementTypeOrSelf(a.getType()));
  // The sign of a zero result is unspecified; distinguishing zeros would take x86 twice the instructions.
  auto anyZero = arith::FastMathFlags::nsz;
  switch (kind) {
  case ReduceKind::Sum:
    return real ? make<arith::AddFOp>(a, b) : make<arith::AddIOp>(a, b);
  case ReduceKind::Prod:
    return real ? make<arith::MulFOp>(a, b) : make<arith::MulIOp>(a, b);
  case ReduceKind::Max:
    return real ? make<arith::MaximumFOp>(a, b, anyZero) : make<arith::MaxSIOp>(a, b);
  case ReduceKind::Min:
    return real ? make<arith::MinimumFOp>(a, b, anyZero) : make<arith::MinSIOp>(a, b);
  case ReduceKind::UMax:
    return make<arith::MaxUIOp>(a, b);
  case ReduceKind::UMin:
    return make<arith::MinUIOp>(a, b);
  case ReduceKind::And:
    return make<arith::AndIOp>(a, b);
  case ReduceKind::Or:
    return make<arith::OrIOp>(a, b);
  }
  llvm_unreachable("reduce kind");
}

Value KernelEmitter::horizontal(ReduceKind kind, Value vector) {
  // A tree of halves takes log2(lanes) steps, in an order that is the same on every run.
  auto type = cast<VectorType>(vector.getType());
  int64_t half = type.getDimSize(0) / 2;
  for (; half > 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < half; ++i) {
      low.push_back(i);
      high.push_back(i + half);
    }
    Value a = vector::ShuffleOp::create(builder, loc, vector, vector, low);
    Value b = vector::ShuffleOp::create(builder, loc, vector, vector, high);
    vector = accumulate(kind, a, b);
  }
  auto first = [&](Value of) { return vector::ExtractOp::create(builder, loc, of, ArrayRef<int64_t>{0}).getResult(); };
  if (half < 1)
    return first(vector);
  Value other = vector::ShuffleOp::create(builder, loc, vector, vector, ArrayRef<int64_t>{1, 0});
  if (!isa<FloatType>(type.getElementType()) || (kind != ReduceKind::Max && kind != ReduceKind::Min))
    return first(accumulate(kind, vector, other));
  // LLVM scalarises the last step and drops its nsz flag.
  using P = arith::CmpFPredicate;
  Value isBetter = make<arith::CmpFOp>(kind == ReduceKind::Max ? P::OGT : P::OLT, vector, other);
  Value isNaN = make<arith::CmpFOp>(P::UNO, vector, vector);
  return first(choose(isNaN, vector, choose(isBetter, vector, other)));
}

/// Reduces `count` >= 1 copies of `value`. Returns null where that needs a loop.
Value KernelEmitter::repeated(ReduceKind kind, Value value, Value count) {
  Type element = getElementTypeOrSelf(value.getType());
  if (kind == ReduceKind::Prod)
    return Value();
  if (kind != ReduceKind::Sum)
    return value;
  Value factor = count;
  if (isa<FloatType>(element)) {
    factor = make<arith::SIToFPOp>(element, make<arith::IndexCastOp>(builder.getI64Type(), count));
  } else if (!element.isIndex()) {
    factor = make<arith::IndexCastOp>(builder.getI64Type(), count);
    if (element.getIntOrFloatBitWidth() < 64)
      factor = make<arith::TruncIOp>(element, factor);
  }
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    factor = splatTo(factor, vector.getDimSize(0));
  return isa<FloatType>(element) ? make<arith::MulFOp>(value, factor) : make<arith::MulIOp>(value, factor);
}

} // namespace kpkg::lower::cpu
