// Implements DotCode: index arithmetic, addresses, loads and loops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/DotCode.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace kpkg::lower::cpu {

Value DotCode::atMost(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, x, y); }

Value DotCode::isOne(Value x) {
  if (std::optional<int64_t> constant = getConstantIntValue(x))
    return arith::ConstantOp::create(b, b.getBoolAttr(*constant == 1));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, index(1));
}

Value DotCode::quotient(Value x, int64_t divisor) { return arith::DivUIOp::create(b, x, index(divisor)); }
Value DotCode::roundUp(Value x, int64_t multiple) {
  return mul(quotient(add(x, index(multiple - 1)), multiple), index(multiple));
}

Value DotCode::at(Value base, Type element, Value offset) {
  Value position = arith::IndexCastOp::create(b, b.getI64Type(), offset);
  return LLVM::GEPOp::create(b, base.getType(), element, base, ArrayRef<LLVM::GEPArg>{position});
}
Value DotCode::at(Value base, Type element, int64_t offset) {
  return LLVM::GEPOp::create(b, base.getType(), element, base, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
}

Value DotCode::load(Type type, Value pointer, int64_t alignment) {
  return LLVM::LoadOp::create(b, type, pointer, alignment);
}
void DotCode::store(Value value, Value pointer, int64_t alignment) {
  LLVM::StoreOp::create(b, value, pointer, alignment);
}

/// Returns the type in which elements are loaded. A bfloat16 is loaded as an integer: it is the upper half of a
/// float32.
static Type loadedType(DotCode &code, Type element) {
  return element.isBF16() ? Type(code.b.getIntegerType(16)) : element;
}

Value DotCode::converted(Value loaded, Type element) {
  auto vector = dyn_cast<VectorType>(loaded.getType());
  auto shaped = [&](Type type) -> Type { return vector ? Type(vector.clone(type)) : type; };
  if (element.isBF16()) {
    Value wide = arith::ExtUIOp::create(b, shaped(b.getI32Type()), loaded);
    Value count = arith::ConstantOp::create(b, b.getI32IntegerAttr(16));
    if (vector)
      count = arith::ConstantOp::create(b, DenseElementsAttr::get(vector.clone(b.getI32Type()), int32_t(16)));
    return arith::BitcastOp::create(b, shaped(b.getF32Type()), Value(arith::ShLIOp::create(b, wide, count)));
  }
  return element == plan.shape.accType ? loaded : arith::ExtFOp::create(b, shaped(plan.shape.accType), loaded);
}

Value DotCode::loadConverted(Value pointer, Type element, int64_t lanes) {
  Type type = loadedType(*this, element);
  Value loaded = load(lanes ? Type(VectorType::get(lanes, type)) : type, pointer, element.getIntOrFloatBitWidth() / 8);
  return converted(loaded, element);
}

Value DotCode::loadSteps(Value pointer, Type element, int64_t lanes) {
  if (!plan.shape.pairs)
    return loadConverted(pointer, element, lanes);
  return load(lanes ? Type(VectorType::get(lanes, b.getI32Type())) : Type(b.getI32Type()), pointer,
              element.getIntOrFloatBitWidth() / 8);
}

Value DotCode::pairOf(Value low, Value high) {
  auto vector = dyn_cast<VectorType>(low.getType());
  Type type = vector ? Type(vector.clone(b.getI32Type())) : Type(b.getI32Type());
  Value count = arith::ConstantOp::create(b, b.getI32IntegerAttr(16));
  if (vector)
    count = arith::ConstantOp::create(b, DenseElementsAttr::get(vector.clone(b.getI32Type()), int32_t(16)));
  Value shifted = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, type, high), count);
  return arith::OrIOp::create(b, arith::ExtUIOp::create(b, type, low), shifted);
}

Value DotCode::loadLines(Value pointer, Value stride, Type element, int64_t lanes) {
  if (!plan.shape.pairs)
    return loadConverted(pointer, element, lanes);
  Type bits = b.getIntegerType(16), type = lanes ? Type(VectorType::get(lanes, bits)) : bits;
  return pairOf(load(type, pointer, 2), load(type, at(pointer, element, stride), 2));
}

bool DotCode::hasMasks(Type element) {
  return plan.unit.vectorBytes == 64 || (plan.unit.broadcastFromMemory && element.getIntOrFloatBitWidth() >= 32);
}

Value DotCode::loadMasked(Value pointer, Type element, Value mask, Value rest) {
  Type type = cast<VectorType>(mask.getType()).clone(loadedType(*this, element));
  if (!rest)
    rest = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return LLVM::MaskedLoadOp::create(b, type, pointer, mask, rest,
                                    b.getI32IntegerAttr(element.getIntOrFloatBitWidth() / 8));
}

Value DotCode::multiplyAdd(Value x, Value y, Value sum) {
  if (!plan.shape.pairs)
    return math::FmaOp::create(b, x, y, sum);
  VectorType halves = VectorType::get(2 * plan.lanes, b.getBF16Type());
  Value pairs[] = {sum, LLVM::BitcastOp::create(b, halves, x), LLVM::BitcastOp::create(b, halves, y)};
  return LLVM::CallIntrinsicOp::create(b, sum.getType(), b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"), pairs)
      .getResults();
}

void DotCode::forEach(Value begin, Value end, int64_t step, llvm::function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, begin, end, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void DotCode::ifThen(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

void DotCode::ifElse(Value condition, llvm::function_ref<void()> body, llvm::function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
  b.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

} // namespace kpkg::lower::cpu
