// Implements implicit conversions: constants adapt, Int promotes to float, shapes broadcast. Nothing narrows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Elaborator.h"

#include <cmath>

namespace kpkg::compiler {

bool Elaborator::fitsConstant(const Value &value, DType element) {
  if (isFloat(element))
    return true;
  if (element == DType::Bool)
    return value.isBool();
  if (value.isBool())
    return true;
  if (!value.isInt())
    return false;
  unsigned bits = bitsOf(element);
  if (isUnsigned(element))
    return value.asInt() >= 0 && (bits == 64 || value.asInt() < (int64_t(1) << bits));
  return bits == 64 || (value.asInt() >= -(int64_t(1) << (bits - 1)) && value.asInt() < (int64_t(1) << (bits - 1)));
}

std::optional<DType> Elaborator::common(const Operand &lhs, const Operand &rhs, std::string_view what,
                                        SourceRange range) {
  DType a = lhs.type->element, b = rhs.type->element;
  auto mismatch = [&](std::string_view why) {
    diags.report(diag::OperandsDiffer, range, what, describe(lhs), describe(rhs), why);
    return std::nullopt;
  };
  if (lhs.constant && rhs.constant)
    return isFloat(a) || isFloat(b) ? defaultFloat() : (a == DType::Bool ? b : a);
  if (lhs.constant || rhs.constant) {
    const Value &value = lhs.constant ? *lhs.constant : *rhs.constant;
    DType other = lhs.constant ? b : a;
    if (other == DType::Bool && !value.isBool())
      return lhs.constant ? a : b;
    if (value.isFloat() && !isFloat(other))
      return defaultFloat();
    if (!fitsConstant(value, other)) {
      diags.report(diag::ConstantDoesNotFit, range, value.str(), typeNameOf(other));
      return std::nullopt;
    }
    return other;
  }
  if (a == b)
    return a;
  if (a == DType::Bool)
    return b;
  if (b == DType::Bool)
    return a;
  if (isFloat(a) && isFloat(b) && lhs.type->isTile() != rhs.type->isTile())
    return lhs.type->isTile() ? a : b; // as PyTorch and Triton do with numbers beside tensors
  if (isFloat(a) && isFloat(b))
    return mismatch("floats of different types do not mix; convert one with `.cast[...]()`");
  if (isFloat(a) || isFloat(b))
    return isFloat(a) ? a : b;
  if (isSigned(a) != isSigned(b))
    return mismatch("signed and unsigned integers do not mix; convert one with `.cast[...]()`");
  if (bitsOf(a) == bitsOf(b))
    return DType::Int; // Int and Int64
  return bitsOf(a) > bitsOf(b) ? a : b;
}

std::optional<std::vector<int64_t>> Elaborator::broadcastShapes(const Type *lhs, const Type *rhs, std::string_view what,
                                                                SourceRange range) {
  const std::vector<int64_t> &a = lhs->shape, &b = rhs->shape;
  size_t rank = std::max(a.size(), b.size());
  std::vector<int64_t> shape(rank);
  int64_t size = 1;
  for (size_t i = 0; i < rank; ++i) {
    int64_t x = i + a.size() >= rank ? a[i + a.size() - rank] : 1;
    int64_t y = i + b.size() >= rank ? b[i + b.size() - rank] : 1;
    if (x != y && x != 1 && y != 1) {
      diags.report(diag::ShapesDiffer, range, what, lhs->str(), rhs->str());
      return std::nullopt;
    }
    shape[i] = x == 1 ? y : x;
    size = std::min(size * shape[i], maxTileElements + 1);
  }
  if (size > maxTileElements) {
    diags.report(diag::TileTooLarge, range, maxTileElements);
    return std::nullopt;
  }
  return shape;
}

/// Returns a constant number as a value of element type `element`.
static Value adapted(const Value &value, DType element) {
  if (isFloat(element))
    return Value(value.isBool() ? (value.asBool() ? 1.0 : 0.0) : value.asNumber());
  if (element != DType::Bool && value.isBool())
    return Value(static_cast<int64_t>(value.asBool()));
  return value;
}

hir::Node *Elaborator::numberAs(const Operand &operand, DType element) {
  if (operand.constant)
    return emitConstant(adapted(*operand.constant, element), types.scalar(element), operand.range);
  if (operand.type->element == element)
    return operand.node;
  return emit(Kind::Cast, types.withElement(operand.type, element), operand.range, {operand.node});
}

hir::Node *Elaborator::broadcastTo(Node *node, const std::vector<int64_t> &shape) {
  if (shape.empty())
    return node;
  DType element = node->type->element;
  const Type *type = types.tile(element, shape);
  if (node->type == type)
    return node;
  if (node->type->isScalar()) {
    if (node->kind == Kind::Constant)
      return emitConstant(node->value, type, node->range);
    return emit(Kind::Splat, type, node->range, {node});
  }
  if (node->type->shape.size() != shape.size()) {
    std::vector<int64_t> padded(shape.size() - node->type->shape.size(), 1);
    padded.insert(padded.end(), node->type->shape.begin(), node->type->shape.end());
    node = emit(Kind::Reshape, types.tile(element, std::move(padded)), node->range, {node});
  }
  return node->type == type ? node : emit(Kind::Broadcast, type, node->range, {node});
}

hir::Node *Elaborator::numberAs(const Operand &operand, DType element, const std::vector<int64_t> &shape) {
  if (operand.constant && !shape.empty())
    return emitConstant(adapted(*operand.constant, element), types.tile(element, shape), operand.range);
  return broadcastTo(numberAs(operand, element), shape);
}

void Elaborator::reportNoNumbers(const Operand &lhs, const Operand &rhs, std::string_view what, SourceRange range) {
  auto isHostTensor = [](const Operand &operand) {
    return operand.type->isTensor() || operand.type->isOptionalTensor();
  };
  diags.report(diag::OperandsDiffer, range, what, describe(lhs), describe(rhs),
               isHostTensor(lhs) || isHostTensor(rhs)
                   ? "an op only allocates and launches; write a kernel that computes with the tensors' elements"
                   : "both must be numbers or tiles");
}

bool Elaborator::unify(const Operand &lhs, const Operand &rhs, std::string_view what, SourceRange range, Node *&a,
                       Node *&b) {
  if (lhs.isError() || rhs.isError())
    return false;
  if (!lhs.type->isNumeric() || !rhs.type->isNumeric()) {
    reportNoNumbers(lhs, rhs, what, range);
    return false;
  }
  auto element = common(lhs, rhs, what, range);
  auto shape = broadcastShapes(lhs.type, rhs.type, what, range);
  if (!element || !shape)
    return false;
  a = numberAs(lhs, *element, *shape);
  b = numberAs(rhs, *element, *shape);
  return true;
}

hir::Node *Elaborator::materialise(const Operand &operand) {
  if (operand.node)
    return operand.node;
  if (operand.isStruct())
    diags.report(diag::OnlyComptime, operand.range, operand.type->str());
  if (!operand.constant)
    return nullptr;
  const Value &value = *operand.constant;
  if (value.isNone())
    return emit(Kind::NoTensor, types.optionalTensor, operand.range);
  if (value.isSequence() && value.asSequence().isList) {
    std::vector<Node *> items;
    for (const Value &item : value.asSequence().items) {
      if (!item.isInt()) {
        diags.report(diag::TypeMismatch, operand.range, "this list", "a list with other things than Int", "List[Int]");
        return nullptr;
      }
      items.push_back(emitConstant(item, types.integer(), operand.range));
    }
    return emit(Kind::MakeList, types.list, operand.range, std::move(items));
  }
  if (value.isFunction() || value.isSequence() || value.isStructName()) {
    diags.report(diag::OnlyComptime, operand.range, operand.type->str());
    return nullptr;
  }
  return emitConstant(value, operand.type, operand.range);
}

hir::Node *Elaborator::convert(const Operand &operand, const Type *type, std::string_view what) {
  if (operand.isError() || type->isError())
    return nullptr;
  const Type *from = operand.type;
  auto mismatch = [&]() -> Node * {
    DiagnosticBuilder report = diags.report(diag::TypeMismatch, operand.range, what, describe(operand), type->str());
    bool isCast = kind == BodyKind::Kernel && from->isNumeric() && type->isNumeric() && !operand.isTuple() &&
                  from->shape == type->shape;
    if (isCast && valueNameOf(type->element) != "")
      report.note(diag::CastConverts, operand.range, valueNameOf(type->element));
    if (isOneElement(operand) && type->isScalar())
      report.note(diag::ScalarReads, operand.range);
    return nullptr;
  };
  if (operand.isTuple() || operand.isStruct())
    return mismatch();
  if (from == type && !operand.isConstant())
    return operand.node;
  if (type->isScalar() && from->isScalar()) {
    DType element = type->element;
    if (operand.constant) {
      bool fits = fitsConstant(*operand.constant, element);
      if (!fits && operand.isConstantInt() && isInteger(element)) {
        diags.report(diag::ConstantDoesNotFit, operand.range, operand.constant->str(), typeNameOf(element));
        return nullptr;
      }
      return fits && !(operand.constant->isBool() && element != DType::Bool) ? numberAs(operand, element) : mismatch();
    }
    bool widens = (isInteger(from->element) && isFloat(element)) ||
                  (from->element == DType::Float32 && element == DType::Float64) ||
                  (isInteger(from->element) && isInteger(element) && isSigned(from->element) == isSigned(element) &&
                   bitsOf(from->element) <= bitsOf(element));
    return widens ? numberAs(operand, element) : mismatch();
  }
  if (type->isScalar(DType::Float64) && from->isOptionalFloat())
    return operand.node;
  if (type->isOptionalFloat()) {
    if (operand.isNone())
      return emit(Kind::NoFloat, types.optionalFloat, operand.range);
    return from->isOptionalFloat() ? operand.node : convert(operand, types.scalar(DType::Float64), what);
  }
  if (type->kind == TypeKind::DType && from->isOptionalDType())
    return operand.node;
  if (type->isOptionalDType()) {
    if (operand.isNone())
      return emit(Kind::NoDType, types.optionalDType, operand.range);
    return from->isOptionalDType() ? operand.node : convert(operand, types.dtype, what);
  }
  if (type->kind == TypeKind::TensorList && isEmptyList(operand))
    return emit(Kind::MakeList, types.tensorList, operand.range);
  if (type->isTensor())
    return from->isTensor() || from->isOptionalTensor() ? operand.node : mismatch();
  if (type->isOptionalTensor())
    return from->isTensor() || from->isOptionalTensor() || operand.isNone() ? materialise(operand) : mismatch();
  if (from == type)
    return materialise(operand);
  return mismatch();
}

bool Elaborator::isEmptyList(const Operand &operand) {
  return operand.constant && operand.constant->isSequence() && operand.constant->asSequence().isList &&
         operand.constant->asSequence().items.empty();
}

bool Elaborator::isOneElement(const Operand &operand) { return operand.type->isTile() && operand.type->size() == 1; }

void Elaborator::reportNoCondition(const Operand &operand, SourceRange range) {
  DiagnosticBuilder report = diags.report(diag::ConditionNotBool, range, describe(operand));
  if (isOneElement(operand))
    report.note(diag::ScalarReads, range);
}

hir::Node *Elaborator::condition(const Operand &operand, SourceRange range) {
  if (operand.isError())
    return nullptr;
  if (!operand.type->isScalar(DType::Bool)) {
    reportNoCondition(operand, range);
    return nullptr;
  }
  return materialise(operand);
}

hir::Node *Elaborator::intNode(const Operand &operand, std::string_view what) {
  return convert(operand, types.integer(), what);
}

hir::Node *Elaborator::listNode(const Operand &operand, std::string_view what) {
  return convert(operand, types.list, what);
}

} // namespace kpkg::compiler
