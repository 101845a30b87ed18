// Applies operator precedence: a flat row of operators and operands becomes a tree.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Builder.h"

using namespace kpkg::compiler;
using namespace kpkg::compiler::ast;

namespace {
/// Levels of precedence. A larger level binds tighter; 0 is the whole operation.
enum Level : unsigned {
  orLevel = 1,
  andLevel,
  notLevel,
  compareLevel,
  barLevel,
  caretLevel,
  ampersandLevel,
  shiftLevel,
  addLevel,
  multiplyLevel,
  signLevel,
  powerLevel
};

struct Operator {
  unsigned level = 0; // 0: none
  BinaryOp binary{};  // from barLevel on
};

Operator operatorOf(size_t type) {
  using P = grammar::KParser;
  switch (type) {
  case P::OR:
    return {orLevel};
  case P::AND:
    return {andLevel};
  case P::LESS:
  case P::LESS_EQUAL:
  case P::GREATER:
  case P::GREATER_EQUAL:
  case P::EQUAL:
  case P::NOT_EQUAL:
  case P::IN:
  case P::NOT:
  case P::IS:
    return {compareLevel};
  case P::BAR:
    return {barLevel, BinaryOp::BitOr};
  case P::CARET:
    return {caretLevel, BinaryOp::BitXor};
  case P::AMPERSAND:
    return {ampersandLevel, BinaryOp::BitAnd};
  case P::SHIFT_LEFT:
    return {shiftLevel, BinaryOp::ShiftLeft};
  case P::SHIFT_RIGHT:
    return {shiftLevel, BinaryOp::ShiftRight};
  case P::PLUS:
    return {addLevel, BinaryOp::Add};
  case P::MINUS:
    return {addLevel, BinaryOp::Sub};
  case P::STAR:
    return {multiplyLevel, BinaryOp::Mul};
  case P::SLASH:
    return {multiplyLevel, BinaryOp::Div};
  case P::DOUBLE_SLASH:
    return {multiplyLevel, BinaryOp::FloorDiv};
  case P::PERCENT:
    return {multiplyLevel, BinaryOp::Mod};
  case P::DOUBLE_STAR:
    return {powerLevel, BinaryOp::Pow};
  default:
    return {};
  }
}

/// Returns the first token of the next operator; 0 if there is none.
size_t operatorType(const Children &children) {
  auto *rule = children.peek<grammar::KParser::BinaryOperatorContext>();
  return rule ? Children(rule).type() : 0;
}

CompareOp compareOp(size_t firstToken) {
  using P = grammar::KParser;
  switch (firstToken) {
  case P::LESS:
    return CompareOp::Lt;
  case P::LESS_EQUAL:
    return CompareOp::Le;
  case P::GREATER:
    return CompareOp::Gt;
  case P::GREATER_EQUAL:
    return CompareOp::Ge;
  case P::NOT_EQUAL:
    return CompareOp::Ne;
  case P::IN:
    return CompareOp::In;
  case P::NOT:
    return CompareOp::NotIn;
  case P::IS:
    return CompareOp::Is;
  default:
    return CompareOp::Eq;
  }
}
} // namespace

ExprPtr Builder::operation(P::OperationContext *tree, SourceRange near) {
  Children children(tree);
  return binary(children, 0, near);
}

ExprPtr Builder::binary(Children &children, unsigned weakest, SourceRange near) {
  ExprPtr lhs = prefixed(children, weakest, near);
  while (true) {
    Operator next = operatorOf(operatorType(children));
    if (next.level <= weakest)
      return lhs;
    if (next.level == compareLevel) {
      lhs = comparison(std::move(lhs), children, near);
      continue;
    }
    SourceRange opRange = range(children.take<P::BinaryOperatorContext>());
    // a ** b ** c is a ** (b ** c), and the sign in a ** -b is part of the exponent.
    ExprPtr rhs = binary(children, next.level == powerLevel ? signLevel : next.level, near);
    SourceRange whole = lhs->range.to(rhs->range);
    if (next.level <= andLevel)
      lhs = std::make_unique<LogicalExpr>(whole, next.level == andLevel, std::move(lhs), std::move(rhs));
    else
      lhs = std::make_unique<BinaryExpr>(whole, next.binary, opRange, std::move(lhs), std::move(rhs));
  }
}

ExprPtr Builder::prefixed(Children &children, unsigned weakest, SourceRange near) {
  size_t type = children.type();
  if (type == 0)
    return operand(children.take<P::OperandContext>(), near);
  SourceRange place = range(children.take());
  bool isNot = type == P::NOT;
  // In `a + not b`, `not` binds weaker than the operator on its left.
  if (isNot && weakest > notLevel)
    diags.report(diag::ExpectedToken, place, "`not`", "an expression; write `not` in parentheses");
  ExprPtr value = binary(children, isNot ? notLevel - 1 : signLevel, near);
  UnaryOp op = isNot              ? UnaryOp::Not
               : type == P::PLUS  ? UnaryOp::Plus
               : type == P::MINUS ? UnaryOp::Minus
                                  : UnaryOp::Invert;
  SourceRange whole = place.to(value->range);
  return std::make_unique<UnaryExpr>(whole, op, std::move(value));
}

ExprPtr Builder::comparison(ExprPtr first, Children &children, SourceRange near) {
  std::vector<CompareExpr::Link> links;
  while (operatorOf(operatorType(children)).level == compareLevel) {
    CompareOp op = compareOp(operatorType(children));
    SourceRange opRange = range(children.take<P::BinaryOperatorContext>());
    // In the grammar, the `not` of `is not` precedes the operand.
    antlr4::Token *isNot = op == CompareOp::Is ? children.take(P::NOT) : nullptr;
    if (isNot) {
      op = CompareOp::IsNot;
      opRange = opRange.to(range(isNot));
    }
    ExprPtr rhs = binary(children, compareLevel, near);
    links.push_back({op, opRange, std::move(rhs)});
  }
  SourceRange whole = first->range.to(links.back().rhs->range);
  return std::make_unique<CompareExpr>(whole, std::move(first), std::move(links));
}
