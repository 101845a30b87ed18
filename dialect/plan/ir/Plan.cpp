// Registers the plan dialect and verifies its simple ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/plan/ir/Plan.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "runtime/plan/DType.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialect/plan/ir/PlanDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/plan/ir/PlanTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/plan/ir/PlanOps.cpp.inc"

using namespace mlir;

namespace kpkg::plan_ir {

void PlanDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/plan/ir/PlanTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/plan/ir/PlanOps.cpp.inc"
      >();
}

Operation *PlanDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  if (isa<DTypeType>(type))
    return DTypeConstantOp::create(builder, loc, cast<StringAttr>(value));
  if (isa<StringType>(type))
    return StringConstantOp::create(builder, loc, cast<StringAttr>(value));
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

bool isDTypeName(llvm::StringRef name) { return plan::dtypeFromName({name.data(), name.size()}) != plan::DType::None; }
llvm::StringRef absentDTypeName() { return plan::dtypeName(plan::DType::None); }
int64_t dtypeSize(llvm::StringRef name) { return plan::dtypeBytes(plan::dtypeFromName({name.data(), name.size()})); }
bool dtypeIsFloat(llvm::StringRef name) { return plan::dtypeIsFloat(plan::dtypeFromName({name.data(), name.size()})); }

LogicalResult DTypeConstantOp::verify() {
  if (!isDTypeName(getValue()) && getValue() != absentDTypeName())
    return emitOpError() << "unknown dtype \"" << getValue() << "\"";
  return success();
}

LogicalResult DropOp::verify() {
  if (getDims().size() != getIndices().size())
    return emitOpError() << "has " << getDims().size() << " dimensions but " << getIndices().size() << " indices";
  if (llvm::any_of(getDims(), [](int64_t dim) { return dim < 0; }) &&
      llvm::any_of(getDims(), [](int64_t dim) { return dim >= 0; }))
    return emitOpError() << "counts some dimensions from the front and some from the end";
  for (auto [i, dim] : llvm::enumerate(getDims()))
    if (llvm::is_contained(getDims().take_front(i), dim))
      return emitOpError() << "drops dimension " << dim << " twice";
  return success();
}

/// Returns the number of `{}` in a message, or -1 if its braces are unbalanced.
static int countPlaceholders(llvm::StringRef message) {
  int count = 0;
  for (size_t i = 0; i < message.size(); ++i) {
    char c = message[i], next = i + 1 < message.size() ? message[i + 1] : 0;
    if (c != '{' && c != '}')
      continue;
    if (next == c)
      ++i;
    else if (c == '{' && next == '}')
      ++count, ++i;
    else
      return -1;
  }
  return count;
}

LogicalResult RaiseOp::verify() {
  int count = countPlaceholders(getMessage());
  if (count < 0)
    return emitOpError() << "message has an unbalanced brace; write `{{` or `}}` for a brace";
  if (count != static_cast<int>(getValues().size()))
    return emitOpError() << "message has " << count << " placeholders but " << getValues().size() << " values follow";
  return success();
}

} // namespace kpkg::plan_ir
