// Checks operators on numbers, tiles, lists, dtypes and strings.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Elaborator.h"
#include "compiler/comptime/Fold.h"

#include <cctype>
#include <cmath>

namespace kpkg::compiler {
namespace {

hir::Kind kindOf(ast::BinaryOp op) {
  switch (op) {
  case ast::BinaryOp::Add:
    return hir::Kind::Add;
  case ast::BinaryOp::Sub:
    return hir::Kind::Sub;
  case ast::BinaryOp::Mul:
    return hir::Kind::Mul;
  case ast::BinaryOp::Div:
    return hir::Kind::Div;
  case ast::BinaryOp::FloorDiv:
    return hir::Kind::FloorDiv;
  case ast::BinaryOp::Mod:
    return hir::Kind::Mod;
  case ast::BinaryOp::Pow:
    return hir::Kind::Pow;
  case ast::BinaryOp::BitAnd:
    return hir::Kind::BitAnd;
  case ast::BinaryOp::BitOr:
    return hir::Kind::BitOr;
  case ast::BinaryOp::BitXor:
    return hir::Kind::BitXor;
  case ast::BinaryOp::ShiftLeft:
    return hir::Kind::ShiftLeft;
  case ast::BinaryOp::ShiftRight:
    return hir::Kind::ShiftRight;
  }
  return hir::Kind::Add;
}

bool isBitwise(ast::BinaryOp op) {
  return op == ast::BinaryOp::BitAnd || op == ast::BinaryOp::BitOr || op == ast::BinaryOp::BitXor ||
         op == ast::BinaryOp::ShiftLeft || op == ast::BinaryOp::ShiftRight;
}

} // namespace

Operand Elaborator::checkUnary(const ast::UnaryExpr &expr) {
  if (expr.op == ast::UnaryOp::Minus && expr.operand->is<ast::IntLiteral>()) {
    auto value = comptime(expr); // the smallest Int has no positive literal
    return value ? constant(*value, expr.range) : error(expr.range);
  }
  Operand operand = check(*expr.operand);
  if (operand.isError())
    return operand;
  if (operand.constant) {
    Folded folded = foldUnary(expr.op, *operand.constant);
    if (folded)
      return constant(*folded.value, expr.range);
    diags.report(diag::ComptimeError, expr.range, folded.error);
    return error(expr.range);
  }
  const Type *type = operand.type;
  bool isNumber = type->isNumeric();
  switch (expr.op) {
  case ast::UnaryOp::Plus:
    if (isNumber && type->element != DType::Bool)
      return operand;
    break;
  case ast::UnaryOp::Minus:
    if (isNumber && type->element != DType::Bool && !isFloatForStorage(type->element))
      return result(Kind::Negate, type, expr.range, {operand.node});
    break;
  case ast::UnaryOp::Invert:
    if (isNumber && !isFloat(type->element))
      return result(Kind::Invert, type, expr.range, {operand.node});
    break;
  case ast::UnaryOp::Not:
    if (type->isScalar(DType::Bool))
      return result(Kind::Not, type, expr.range, {operand.node});
    break;
  }
  diags.report(diag::OperandUnfit, expr.range, spelling(expr.op), describe(operand));
  return error(expr.range);
}

Operand Elaborator::divisionOfInts(const Operand &lhs, const Operand &rhs, SourceRange range) {
  auto shape = broadcastShapes(lhs.type, rhs.type, "/", range);
  if (!shape)
    return error(range);
  Node *a = numberAs(lhs, defaultFloat(), *shape);
  Node *b = numberAs(rhs, defaultFloat(), *shape);
  return result(Kind::Div, a->type, range, {a, b});
}

/// Expands powers to products if the exponent is a small Int, or to a root if it is 0.5. Other powers of floats, and
/// Int ** Int in ops, are computed at run time.
Operand Elaborator::power(const Operand &base, const Operand &exponent, SourceRange range) {
  if (kind == BodyKind::Op && base.type->isScalar(DType::Int) && exponent.type->isScalar(DType::Int))
    return result(Kind::Pow, types.integer(), range, {materialise(base), materialise(exponent)});
  if (exponent.constant && exponent.constant->isFloat() && isFloat(base.type->element)) {
    double value = exponent.constant->asFloat();
    if (value == 0.5 || value == -0.5)
      return result(value > 0 ? Kind::Sqrt : Kind::Rsqrt, base.type, range, {materialise(base)});
    if (value == std::floor(value) && std::fabs(value) <= 64)
      return power(base, constant(Value(static_cast<int64_t>(value)), exponent.range), range);
  }
  bool isSmall = exponent.isConstantInt() && exponent.constant->asInt() >= -64 && exponent.constant->asInt() <= 64;
  if (!isSmall && (isFloat(base.type->element) || isFloat(exponent.type->element))) {
    Node *a = nullptr, *b = nullptr;
    return unify(base, exponent, "**", range, a, b) ? result(Kind::Pow, a->type, range, {a, b}) : error(range);
  }
  if (!isSmall || (exponent.constant->asInt() < 0 && !isFloat(base.type->element)))
    return notSupported(range, "`**` with this exponent",
                        "cast the base to a float type, or use a small constant exponent");
  int64_t count = std::abs(exponent.constant->asInt());
  Operand power;
  Operand square = base;
  for (int64_t rest = count; rest; rest >>= 1) {
    if (rest & 1)
      power = power.type ? binary(ast::BinaryOp::Mul, power, square, range) : square;
    if (rest > 1)
      square = binary(ast::BinaryOp::Mul, square, square, range);
  }
  if (!power.type) {
    Operand one = constant(Value(int64_t(1)), range);
    return runTime(numberAs(one, base.type->element, base.type->shape));
  }
  return exponent.constant->asInt() < 0 ? binary(ast::BinaryOp::Div, constant(Value(1.0), range), power, range) : power;
}

Operand Elaborator::binary(ast::BinaryOp op, const Operand &lhs, const Operand &rhs, SourceRange range) {
  if (lhs.isError() || rhs.isError())
    return error(range);
  if (lhs.constant && rhs.constant) {
    Folded folded = foldBinary(op, *lhs.constant, *rhs.constant);
    if (folded)
      return constant(*folded.value, range);
    diags.report(diag::ComptimeError, range, folded.error);
    return error(range);
  }
  if (lhs.isTuple() || rhs.isTuple())
    return binaryOfTuples(op, lhs, rhs, range);
  if (lhs.type->isList() && rhs.type->isList() && op == ast::BinaryOp::Add)
    return joinLists(lhs, rhs, range);
  if (!lhs.type->isNumeric() || !rhs.type->isNumeric()) {
    reportNoNumbers(lhs, rhs, spelling(op), range);
    return error(range);
  }
  if (op == ast::BinaryOp::Pow)
    return power(lhs, rhs, range);
  bool ints = !isFloat(lhs.type->element) && !isFloat(rhs.type->element);
  if (op == ast::BinaryOp::Div && ints)
    return divisionOfInts(lhs, rhs, range);
  Node *a = nullptr, *b = nullptr;
  if (!unify(lhs, rhs, spelling(op), range, a, b))
    return error(range);
  DType element = a->type->element;
  bool fits = isBitwise(op)
                  ? !isFloat(element) &&
                        !(element == DType::Bool && (op == ast::BinaryOp::ShiftLeft || op == ast::BinaryOp::ShiftRight))
                  : element != DType::Bool;
  if (!fits) {
    diags.report(diag::OperandsDiffer, range, spelling(op), describe(lhs), describe(rhs),
                 isBitwise(op) ? "both must be integers or Bool"
                               : "Bool is no number; use `&`, `|`, `^`, or `.cast[...]()`");
    return error(range);
  }
  if (isFloatForStorage(element))
    return notSupported(range, "arithmetic on 8-bit floats", "convert to a wider float with `.cast[...]()` first");
  return result(kindOf(op), a->type, range, {a, b});
}

/// Refuses `is None` of an argument of a kernel: to the code that runs, an absent tensor is an empty one.
Operand Elaborator::noneInKernel(const std::string &name, SourceRange range) {
  std::string parameter = "HAS_";
  for (unsigned char c : name)
    parameter += c == '.' ? '_' : char(std::toupper(c)); // fields of structs have dots
  return notSupported(range, "`" + name + " is None` in a kernel",
                      "give the kernel a comptime parameter `" + parameter + ": Bool`, and launch it with `[" +
                          parameter + "=" + name + " is not None]`");
}

Operand Elaborator::compareNone(bool isNone, const Operand &operand, SourceRange range) {
  if (operand.isError())
    return operand;
  if (operand.constant)
    return constant(Value(operand.constant->isNone() == isNone), range);
  bool isArgument = kind == BodyKind::Kernel && operand.node && operand.node->kind == Kind::Parameter;
  if (isArgument && function.parameters[size_t(operand.node->ints[0])].mayBeNone)
    return noneInKernel(function.parameters[size_t(operand.node->ints[0])].name, range);
  if (operand.type->kind != TypeKind::Optional)
    return constant(Value(!isNone), range);
  Operand test = result(Kind::IsNone, types.boolean(), range, {operand.node});
  return isNone ? test : result(Kind::Not, types.boolean(), range, {test.node});
}

Operand Elaborator::comparison(ast::CompareOp op, const Operand &lhs, const Operand &rhs, SourceRange range) {
  if (lhs.isError() || rhs.isError())
    return error(range);
  if (op == ast::CompareOp::Is || op == ast::CompareOp::IsNot) {
    if (rhs.isNone())
      return compareNone(op == ast::CompareOp::Is, lhs, range);
    diags.report(diag::OperandsDiffer, range, spelling(op), describe(lhs), describe(rhs),
                 "`is` compares with None only");
    return error(range);
  }
  if (lhs.constant && rhs.constant) {
    Folded folded = foldCompare(op, *lhs.constant, *rhs.constant);
    if (folded)
      return constant(*folded.value, range);
    diags.report(diag::ComptimeError, range, folded.error);
    return error(range);
  }
  if ((op == ast::CompareOp::In || op == ast::CompareOp::NotIn) && rhs.constant && rhs.constant->isSequence()) {
    // Expands `x in (a, b)` to a comparison with each item.
    Operand any = constant(Value(false), range);
    for (const Value &item : rhs.constant->asSequence().items) {
      Operand equal = comparison(ast::CompareOp::Eq, lhs, constant(item, rhs.range), range);
      any = any.constant ? equal : binary(ast::BinaryOp::BitOr, any, equal, range);
    }
    if (any.isError() || op == ast::CompareOp::In)
      return any;
    return any.constant ? constant(Value(true), range) : result(Kind::Not, types.boolean(), range, {any.node});
  }
  bool isEquality = op == ast::CompareOp::Eq || op == ast::CompareOp::Ne;
  auto isDType = [](const Type &type) { return type.kind == TypeKind::DType || type.isOptionalDType(); };
  if (isEquality && isDType(*lhs.type) && isDType(*rhs.type)) {
    Operand same = result(Kind::DTypeEqual, types.boolean(), range, {materialise(lhs), materialise(rhs)});
    return same.isError() || op == ast::CompareOp::Eq ? same : result(Kind::Not, types.boolean(), range, {same.node});
  }
  if (isEquality && lhs.type == rhs.type) {
    TypeKind typeKind = lhs.type->kind;
    if (typeKind == TypeKind::List || typeKind == TypeKind::String) {
      Kind equal = typeKind == TypeKind::List ? Kind::ListEqual : Kind::StringEqual;
      Operand same = result(equal, types.boolean(), range, {materialise(lhs), materialise(rhs)});
      return same.isError() || op == ast::CompareOp::Eq ? same : result(Kind::Not, types.boolean(), range, {same.node});
    }
  }
  Node *a = nullptr, *b = nullptr;
  if (!unify(lhs, rhs, spelling(op), range, a, b))
    return error(range);
  if (!isEquality && a->type->element == DType::Bool) {
    diags.report(diag::OperandsDiffer, range, spelling(op), describe(lhs), describe(rhs), "Bool has no order");
    return error(range);
  }
  const Type *type = a->type->isTile() ? types.tile(DType::Bool, a->type->shape) : types.boolean();
  Kind compare = op == ast::CompareOp::Eq   ? Kind::Equal
                 : op == ast::CompareOp::Ne ? Kind::NotEqual
                 : op == ast::CompareOp::Lt ? Kind::Less
                 : op == ast::CompareOp::Le ? Kind::LessEqual
                 : op == ast::CompareOp::Gt ? Kind::Greater
                                            : Kind::GreaterEqual;
  return result(compare, type, range, {a, b});
}

Operand Elaborator::checkCompare(const ast::CompareExpr &expr) {
  Operand lhs = check(*expr.first);
  Operand all;
  for (const auto &link : expr.links) {
    Operand rhs = check(*link.rhs);
    Operand holds = comparison(link.op, lhs, rhs, link.opRange);
    if (!all.type)
      all = holds;
    else if (all.isError() || holds.isError())
      all = error(expr.range);
    else
      all = binary(ast::BinaryOp::BitAnd, all, holds, link.opRange);
    lhs = rhs;
  }
  all.range = expr.range;
  return all;
}

} // namespace kpkg::compiler
