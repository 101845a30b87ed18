// Converts elementwise arithmetic, comparisons and conversions from HIR to arith and math.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/irgen/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace kpkg::compiler {

using hir::Kind;

namespace {
/// Builds ops for one element type, for tiles and scalars alike.
class Elementwise {
public:
  Elementwise(OpBuilder &builder, Location loc, DType dtype) : builder(builder), loc(loc), dtype(dtype) {}

  template <typename Op, typename... Args> mlir::Value make(Args... args) { return Op::create(builder, loc, args...); }

  /// Creates the op for floats, signed integers or unsigned integers (Bool counts as unsigned).
  template <typename FloatOp, typename SignedOp, typename UnsignedOp = SignedOp>
  mlir::Value pick(mlir::Value a, mlir::Value b) {
    if (isFloat(dtype))
      return make<FloatOp>(a, b);
    if (isSigned(dtype))
      return make<SignedOp>(a, b);
    return make<UnsignedOp>(a, b);
  }

  mlir::Value number(mlir::Type type, int64_t value) {
    mlir::Type element = getElementTypeOrSelf(type);
    TypedAttr attribute = isa<FloatType>(element) ? TypedAttr(builder.getFloatAttr(element, static_cast<double>(value)))
                                                  : TypedAttr(builder.getIntegerAttr(element, value));
    if (auto tile = dyn_cast<RankedTensorType>(type))
      attribute = DenseElementsAttr::get(tile, ArrayRef<Attribute>(attribute));
    return make<arith::ConstantOp>(attribute);
  }

  mlir::Value compare(arith::CmpFPredicate floats, arith::CmpIPredicate signeds, arith::CmpIPredicate unsigneds,
                      mlir::Value a, mlir::Value b) {
    if (isFloat(dtype))
      return make<arith::CmpFOp>(floats, a, b);
    return make<arith::CmpIOp>(isSigned(dtype) ? signeds : unsigneds, a, b);
  }

  mlir::Value comparison(Kind kind, mlir::Value a, mlir::Value b) {
    using F = arith::CmpFPredicate;
    using I = arith::CmpIPredicate;
    switch (kind) {
    case Kind::Equal:
      return compare(F::OEQ, I::eq, I::eq, a, b);
    case Kind::NotEqual:
      return compare(F::UNE, I::ne, I::ne, a, b);
    case Kind::Less:
      return compare(F::OLT, I::slt, I::ult, a, b);
    case Kind::LessEqual:
      return compare(F::OLE, I::sle, I::ule, a, b);
    case Kind::Greater:
      return compare(F::OGT, I::sgt, I::ugt, a, b);
    case Kind::GreaterEqual:
      return compare(F::OGE, I::sge, I::uge, a, b);
#define HIR_COMPARISON(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      break;
    }
    llvm_unreachable("a node that is no comparison");
  }

  mlir::Value floatFunction(Kind kind, mlir::Value a) {
    switch (kind) {
    case Kind::Exp:
      return make<math::ExpOp>(a);
    case Kind::Exp2:
      return make<math::Exp2Op>(a);
    case Kind::Log:
      return make<math::LogOp>(a);
    case Kind::Log2:
      return make<math::Log2Op>(a);
    case Kind::Sqrt:
      return make<math::SqrtOp>(a);
    case Kind::Rsqrt:
      return make<math::RsqrtOp>(a);
    case Kind::Sin:
      return make<math::SinOp>(a);
    case Kind::Cos:
      return make<math::CosOp>(a);
    case Kind::Tanh:
      return make<math::TanhOp>(a);
    case Kind::Erf:
      return make<math::ErfOp>(a);
    case Kind::Floor:
      return make<math::FloorOp>(a);
    case Kind::Ceil:
      return make<math::CeilOp>(a);
    case Kind::Round:
      return make<math::RoundEvenOp>(a);
#define HIR_FLOAT_FUNCTION(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      break;
    }
    llvm_unreachable("a node that is no function of a float");
  }

  /// Implements Python's `//`, which rounds down.
  mlir::Value floorDivide(mlir::Value a, mlir::Value b) {
    if (isFloat(dtype))
      return make<math::FloorOp>(make<arith::DivFOp>(a, b));
    return isSigned(dtype) ? make<arith::FloorDivSIOp>(a, b) : make<arith::DivUIOp>(a, b);
  }

  /// Implements Python's `%`, which has the sign of the divisor.
  mlir::Value remainder(mlir::Value a, mlir::Value b) {
    if (!isFloat(dtype) && !isSigned(dtype))
      return make<arith::RemUIOp>(a, b);
    if (isFloat(dtype)) {
      mlir::Value quotient = make<math::FloorOp>(make<arith::DivFOp>(a, b));
      return make<arith::SubFOp>(a, make<arith::MulFOp>(quotient, b));
    }
    return make<arith::SubIOp>(a, make<arith::MulIOp>(make<arith::FloorDivSIOp>(a, b), b));
  }

  mlir::Value negate(mlir::Value a) {
    return isFloat(dtype) ? make<arith::NegFOp>(a) : make<arith::SubIOp>(number(a.getType(), 0), a);
  }

  mlir::Value invert(mlir::Value a) {
    return make<arith::XOrIOp>(a, number(a.getType(), dtype == DType::Bool ? 1 : -1));
  }

  mlir::Value absolute(mlir::Value a) {
    if (isFloat(dtype))
      return make<math::AbsFOp>(a);
    return make<arith::MaxSIOp>(a, negate(a));
  }

private:
  OpBuilder &builder;
  Location loc;
  DType dtype;
};
} // namespace

mlir::Value Body::elementwise(const hir::Node &node) {
  mlir::Value a = node.operands.size() > 0 ? at(node.operands[0]) : mlir::Value();
  mlir::Value b = node.operands.size() > 1 ? at(node.operands[1]) : mlir::Value();
  mlir::Value c = node.operands.size() > 2 ? at(node.operands[2]) : mlir::Value();
  const Type *type = node.operands.empty() ? node.type : node.operands[0]->type;
  Elementwise e(builder, location(node.range), type->element);
  switch (node.kind) {
  case Kind::Add:
    return e.pick<arith::AddFOp, arith::AddIOp>(a, b);
  case Kind::Sub:
    return e.pick<arith::SubFOp, arith::SubIOp>(a, b);
  case Kind::Mul:
    return e.pick<arith::MulFOp, arith::MulIOp>(a, b);
  case Kind::Div:
    return e.pick<arith::DivFOp, arith::DivSIOp, arith::DivUIOp>(a, b);
  case Kind::FloorDiv:
    return e.floorDivide(a, b);
  case Kind::Mod:
    return e.remainder(a, b);
  case Kind::BitAnd:
    return e.make<arith::AndIOp>(a, b);
  case Kind::BitOr:
    return e.make<arith::OrIOp>(a, b);
  case Kind::BitXor:
    return e.make<arith::XOrIOp>(a, b);
  case Kind::ShiftLeft:
    return e.make<arith::ShLIOp>(a, b);
  case Kind::ShiftRight:
    return e.pick<arith::ShRSIOp, arith::ShRSIOp, arith::ShRUIOp>(a, b);
  case Kind::Min:
    return e.pick<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(a, b);
  case Kind::Max:
    return e.pick<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(a, b);
#define HIR_COMPARISON(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    return e.comparison(node.kind, a, b);
  case Kind::Negate:
    return e.negate(a);
  case Kind::Invert:
  case Kind::Not:
    return e.invert(a);
  case Kind::Abs:
    return e.absolute(a);
#define HIR_FLOAT_FUNCTION(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    return e.floatFunction(node.kind, a);
  case Kind::Reciprocal:
    return reciprocal(a, type, location(node.range));
  case Kind::Pow: // of Ints: a plan op
    return isFloat(type->element) ? e.make<math::PowFOp>(a, b) : mlir::Value();
  case Kind::IsNan:
    return e.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, a, a);
  case Kind::Popcount:
    return e.make<math::CtPopOp>(a);
  case Kind::Fma:
    return isFloat(type->element) ? e.make<math::FmaOp>(a, b, c)
                                  : e.make<arith::AddIOp>(e.make<arith::MulIOp>(a, b), c);
  case Kind::Select:
    return e.make<arith::SelectOp>(a, b, c);
  case Kind::Cast:
    return cast(a, type, node.type, location(node.range));
  case Kind::Bitcast:
    return e.make<arith::BitcastOp>(convert(node.type), a);
#define HIR_ELEMENTWISE(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    break;
  }
  llvm_unreachable("a node that is not elementwise");
}

mlir::Value Body::reciprocal(mlir::Value value, const Type *type, Location loc) {
  mlir::Value one = constant(compiler::Value(1.0), type, loc);
  return arith::DivFOp::create(builder, loc, one, value, arith::FastMathFlags::arcp);
}

namespace {
/// Converts between f32 and float8_e8m0fnu, whose elements are i8: the exponent of an f32, without zero and sign.
class ExponentFloats {
public:
  ExponentFloats(OpBuilder &builder, Location loc, mlir::Type shaped) : builder(builder), loc(loc), shaped(shaped) {}

  mlir::Value toFloat32(mlir::Value bytes) {
    mlir::Value exponent = make<arith::ExtUIOp>(as(builder.getI32Type()), bytes);
    mlir::Value bits = make<arith::ShLIOp>(exponent, number(mantissaBits));
    // The smallest value is a subnormal f32. The largest exponent is of NaN, not of infinity.
    bits = make<arith::SelectOp>(is(arith::CmpIPredicate::eq, exponent, 0), number(0x00400000), bits);
    bits = make<arith::SelectOp>(is(arith::CmpIPredicate::eq, exponent, 0xff), number(0x7fc00000), bits);
    return make<arith::BitcastOp>(as(builder.getF32Type()), bits);
  }

  /// Rounds as PyTorch does: to the nearest exponent of the mantissa, halves up, and halves of the smallest value down.
  /// The sign is dropped; infinities and NaN become NaN.
  mlir::Value fromFloat32(mlir::Value value) {
    mlir::Value bits = make<arith::BitcastOp>(as(builder.getI32Type()), value);
    mlir::Value magnitude = make<arith::AndIOp>(bits, number(0x7fffffff));
    mlir::Value half = make<arith::SelectOp>(is(arith::CmpIPredicate::ult, magnitude, 1 << mantissaBits),
                                             number(0x003fffff), number(0x00400000));
    mlir::Value exponent = make<arith::ShRUIOp>(make<arith::AddIOp>(magnitude, half), number(mantissaBits));
    return make<arith::TruncIOp>(as(builder.getI8Type()), make<arith::MinUIOp>(exponent, number(0xff)));
  }

private:
  static constexpr int64_t mantissaBits = 23;

  template <typename Op, typename... Args> mlir::Value make(Args... args) { return Op::create(builder, loc, args...); }
  mlir::Type as(mlir::Type element) {
    auto tile = dyn_cast<RankedTensorType>(shaped);
    return tile ? mlir::Type(tile.clone(element)) : element;
  }
  mlir::Value number(int64_t value) {
    TypedAttr attribute = builder.getI32IntegerAttr(int32_t(value));
    if (auto tile = dyn_cast<RankedTensorType>(as(builder.getI32Type())))
      attribute = DenseElementsAttr::get(tile, ArrayRef<Attribute>(attribute));
    return make<arith::ConstantOp>(attribute);
  }
  mlir::Value is(arith::CmpIPredicate predicate, mlir::Value value, int64_t other) {
    return make<arith::CmpIOp>(predicate, value, number(other));
  }

  OpBuilder &builder;
  Location loc;
  mlir::Type shaped;
};

Type withElement(const Type *type, DType element) {
  Type other = *type;
  other.element = element;
  return other;
}
} // namespace

mlir::Value Body::cast(mlir::Value value, const Type *from, const Type *to, Location loc) {
  if (from->element == to->element)
    return value;
  if (from->element == DType::Float8_e8m0fnu) {
    Type middle = withElement(from, DType::Float32);
    return cast(ExponentFloats(builder, loc, value.getType()).toFloat32(value), &middle, to, loc);
  }
  if (to->element == DType::Float8_e8m0fnu) {
    Type middle = withElement(from, DType::Float32);
    return ExponentFloats(builder, loc, value.getType()).fromFloat32(cast(value, from, &middle, loc));
  }
  mlir::Type type = convert(to);
  if (value.getType() == type && to->element != DType::Bool)
    return value;
  mlir::Type wide = getElementTypeOrSelf(value.getType()), narrow = getElementTypeOrSelf(type);
  auto make = [&]<typename Op>(Op *) -> mlir::Value { return Op::create(builder, loc, type, value); };
  if (to->element == DType::Bool) {
    // All values except zero are true.
    if (from->element == DType::Bool)
      return value;
    compiler::Value zero = isFloat(from->element) ? compiler::Value(0.0) : compiler::Value(int64_t(0));
    mlir::Value none = constant(zero, from, loc);
    if (isFloat(from->element))
      return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, value, none);
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value, none);
  }
  if (isFloat(from->element)) {
    if (isFloat(to->element)) {
      unsigned before = wide.getIntOrFloatBitWidth(), after = narrow.getIntOrFloatBitWidth();
      if (after > before)
        return make(static_cast<arith::ExtFOp *>(nullptr));
      if (after < before)
        return make(static_cast<arith::TruncFOp *>(nullptr));
      // Converts between f16 and bf16, or between the two f8 types, through f32, which holds both.
      mlir::Type middle = isa<RankedTensorType>(type)
                              ? mlir::Type(cast<RankedTensorType>(type).clone(builder.getF32Type()))
                              : mlir::Type(builder.getF32Type());
      value = arith::ExtFOp::create(builder, loc, middle, value);
      return make(static_cast<arith::TruncFOp *>(nullptr));
    }
    // index has no conversion of its own, so it converts through i64.
    mlir::Type target = type;
    if (isa<IndexType>(narrow))
      target = isa<RankedTensorType>(type) ? mlir::Type(cast<RankedTensorType>(type).clone(builder.getI64Type()))
                                           : mlir::Type(builder.getI64Type());
    mlir::Value whole = isUnsigned(to->element) ? mlir::Value(arith::FPToUIOp::create(builder, loc, target, value))
                                                : mlir::Value(arith::FPToSIOp::create(builder, loc, target, value));
    return target == type ? whole : mlir::Value(arith::IndexCastOp::create(builder, loc, type, whole));
  }
  bool fromUnsigned = !isSigned(from->element);
  if (isFloat(to->element)) {
    if (isa<IndexType>(wide)) {
      mlir::Type whole = isa<RankedTensorType>(type)
                             ? mlir::Type(cast<RankedTensorType>(type).clone(builder.getI64Type()))
                             : mlir::Type(builder.getI64Type());
      value = arith::IndexCastOp::create(builder, loc, whole, value);
    }
    return fromUnsigned ? make(static_cast<arith::UIToFPOp *>(nullptr)) : make(static_cast<arith::SIToFPOp *>(nullptr));
  }
  if (isa<IndexType>(wide) || isa<IndexType>(narrow)) {
    if (isa<IndexType>(narrow) && isa<IndexType>(wide))
      return value;
    return fromUnsigned ? make(static_cast<arith::IndexCastUIOp *>(nullptr))
                        : make(static_cast<arith::IndexCastOp *>(nullptr));
  }
  unsigned before = wide.getIntOrFloatBitWidth(), after = narrow.getIntOrFloatBitWidth();
  if (after == before)
    return value;
  if (after < before)
    return make(static_cast<arith::TruncIOp *>(nullptr));
  return fromUnsigned ? make(static_cast<arith::ExtUIOp *>(nullptr)) : make(static_cast<arith::ExtSIOp *>(nullptr));
}

} // namespace kpkg::compiler
