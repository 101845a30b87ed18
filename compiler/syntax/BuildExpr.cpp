// Syntax trees of expressions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Builder.h"
#include "compiler/syntax/Literals.h"
#include <set>

using namespace kpkg::compiler;
using namespace kpkg::compiler::ast;

void Children::settle() {
  current = nullptr;
  token = nullptr;
  for (; context && index < context->children.size(); ++index) {
    antlr4::tree::ParseTree *child = context->children[index];
    if (dynamic_cast<antlr4::ParserRuleContext *>(child)) {
      current = child;
      return;
    }
    auto *terminal = dynamic_cast<antlr4::tree::TerminalNode *>(child);
    if (terminal && !dynamic_cast<antlr4::tree::ErrorNode *>(child)) {
      current = child;
      token = terminal->getSymbol();
      return;
    }
  }
}

SourceRange Builder::range(const antlr4::Token *token) const { return token ? places.range(*token) : SourceRange{}; }

SourceRange Builder::range(const antlr4::ParserRuleContext *context) const {
  if (!context || !context->start)
    return {};
  return range(context->start).to(range(context->stop));
}

Identifier Builder::identifier(const antlr4::Token *token) const {
  if (!token)
    return {};
  SourceRange place = range(token);
  return {std::string(file.slice(place)), place};
}

ExprPtr Builder::expressions(P::ExpressionsContext *tree, SourceRange near) {
  bool hasComma = false;
  std::vector<ExprPtr> elements = commaList(tree, hasComma);
  if (elements.empty())
    return error(near);
  if (!hasComma)
    return std::move(elements.front());
  return std::make_unique<TupleExpr>(range(tree), std::move(elements));
}

std::vector<ExprPtr> Builder::commaList(P::ExpressionsContext *tree, bool &hasComma) {
  std::vector<ExprPtr> elements;
  bool afterComma = false;
  for (Children children(tree); !children.done();) {
    if (auto *element = children.take<P::ExpressionContext>()) {
      elements.push_back(expression(element, range(tree)));
      afterComma = false;
    } else {
      checkComma(children.take(P::COMMA), afterComma);
      hasComma = afterComma = true;
    }
  }
  return elements;
}

void Builder::checkComma(const antlr4::Token *comma, bool afterComma) {
  if (comma && afterComma)
    diags.report(diag::ExpectedToken, range(comma), "`,`", "an expression").fix(range(comma), "");
}

ExprPtr Builder::expression(P::ExpressionContext *tree, SourceRange near) {
  Children children(tree);
  // value (IF condition ELSE value)*, folded from the right.
  std::vector<ExprPtr> parts;
  parts.push_back(disjunction(children.take<P::DisjunctionContext>(), near));
  while (children.take(P::IF)) {
    parts.push_back(disjunction(children.take<P::DisjunctionContext>(), near));
    children.take(P::ELSE);
    parts.push_back(disjunction(children.take<P::DisjunctionContext>(), near));
  }
  while (parts.size() > 1) {
    ExprPtr elseValue = std::move(parts.back());
    parts.pop_back();
    ExprPtr condition = std::move(parts.back());
    parts.pop_back();
    ExprPtr &thenValue = parts.back();
    SourceRange whole = thenValue->range.to(elseValue->range);
    thenValue = std::make_unique<ConditionalExpr>(whole, std::move(condition), std::move(thenValue),
                                                  std::move(elseValue));
  }
  return std::move(parts.front());
}

ExprPtr Builder::disjunction(P::DisjunctionContext *tree, SourceRange near) {
  Children children(tree);
  ExprPtr result = conjunction(children.take<P::ConjunctionContext>(), near);
  while (children.take(P::OR)) {
    ExprPtr rhs = conjunction(children.take<P::ConjunctionContext>(), near);
    SourceRange whole = result->range.to(rhs->range);
    result = std::make_unique<LogicalExpr>(whole, false, std::move(result), std::move(rhs));
  }
  return result;
}

ExprPtr Builder::conjunction(P::ConjunctionContext *tree, SourceRange near) {
  Children children(tree);
  ExprPtr result = inversion(children.take<P::InversionContext>(), near);
  while (children.take(P::AND)) {
    ExprPtr rhs = inversion(children.take<P::InversionContext>(), near);
    SourceRange whole = result->range.to(rhs->range);
    result = std::make_unique<LogicalExpr>(whole, true, std::move(result), std::move(rhs));
  }
  return result;
}

ExprPtr Builder::inversion(P::InversionContext *tree, SourceRange near) {
  Children children(tree);
  std::vector<SourceRange> nots;
  while (antlr4::Token *word = children.take(P::NOT))
    nots.push_back(range(word));
  ExprPtr result = comparison(children.take<P::ComparisonContext>(), near);
  for (; !nots.empty(); nots.pop_back()) {
    SourceRange whole = nots.back().to(result->range);
    result = std::make_unique<UnaryExpr>(whole, UnaryOp::Not, std::move(result));
  }
  return result;
}

static CompareOp compareOp(size_t first, bool second) {
  using P = grammar::KParser;
  switch (first) {
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
    return second ? CompareOp::IsNot : CompareOp::Is;
  default:
    return CompareOp::Eq;
  }
}

ExprPtr Builder::comparison(P::ComparisonContext *tree, SourceRange near) {
  Children children(tree);
  auto side = [&] {
    Children parts(children.take<P::ArithmeticContext>());
    return arithmetic(parts, 0, near);
  };
  ExprPtr first = side();
  std::vector<CompareExpr::Link> links;
  while (auto *op = children.take<P::ComparisonOperatorContext>()) {
    Children words(op);
    size_t word = words.type();
    words.advance();
    CompareOp kind = compareOp(word, words.take(P::NOT));
    links.push_back({kind, range(op), side()});
  }
  if (links.empty())
    return first;
  SourceRange whole = first->range.to(links.back().rhs->range);
  return std::make_unique<CompareExpr>(whole, std::move(first), std::move(links));
}

namespace {
struct BinaryToken {
  BinaryOp op;
  unsigned strength; // binds tighter when larger; 0: no binary operator
};
BinaryToken binaryToken(size_t type) {
  using P = grammar::KParser;
  switch (type) {
  case P::BAR:
    return {BinaryOp::BitOr, 1};
  case P::CARET:
    return {BinaryOp::BitXor, 2};
  case P::AMPERSAND:
    return {BinaryOp::BitAnd, 3};
  case P::SHIFT_LEFT:
    return {BinaryOp::ShiftLeft, 4};
  case P::SHIFT_RIGHT:
    return {BinaryOp::ShiftRight, 4};
  case P::PLUS:
    return {BinaryOp::Add, 5};
  case P::MINUS:
    return {BinaryOp::Sub, 5};
  case P::STAR:
    return {BinaryOp::Mul, 6};
  case P::SLASH:
    return {BinaryOp::Div, 6};
  case P::DOUBLE_SLASH:
    return {BinaryOp::FloorDiv, 6};
  case P::PERCENT:
    return {BinaryOp::Mod, 6};
  default: // ** is not here: it binds tighter than a sign before it, see unary()
    return {BinaryOp::Add, 0};
  }
}
} // namespace

ExprPtr Builder::arithmetic(Children &children, unsigned weakest, SourceRange near) {
  ExprPtr lhs = unary(children, near);
  for (BinaryToken next = binaryToken(children.type()); next.strength > weakest; next = binaryToken(children.type())) {
    SourceRange opRange = range(children.take());
    ExprPtr rhs = arithmetic(children, next.strength, near);
    SourceRange whole = lhs->range.to(rhs->range);
    lhs = std::make_unique<BinaryExpr>(whole, next.op, opRange, std::move(lhs), std::move(rhs));
  }
  return lhs;
}

ExprPtr Builder::unary(Children &children, SourceRange near) {
  size_t type = children.type();
  if (type == P::PLUS || type == P::MINUS || type == P::TILDE) {
    SourceRange sign = range(children.take());
    ExprPtr value = unary(children, near);
    SourceRange whole = sign.to(value->range);
    UnaryOp op = type == P::PLUS ? UnaryOp::Plus : type == P::MINUS ? UnaryOp::Minus : UnaryOp::Invert;
    return std::make_unique<UnaryExpr>(whole, op, std::move(value));
  }
  ExprPtr base = operand(children.take<P::OperandContext>(), near);
  antlr4::Token *power = children.take(P::DOUBLE_STAR);
  if (!power)
    return base;
  ExprPtr exponent = unary(children, near);
  SourceRange whole = base->range.to(exponent->range);
  return std::make_unique<BinaryExpr>(whole, BinaryOp::Pow, range(power), std::move(base), std::move(exponent));
}

ExprPtr Builder::operand(P::OperandContext *tree, SourceRange near) {
  Children children(tree);
  if (tree)
    near = range(tree);
  ExprPtr result = atom(children.take<P::AtomContext>(), near);
  while (!children.done()) {
    antlr4::Token *first = children.take();
    switch (first ? first->getType() : 0) {
    case P::DOT: {
      Identifier name = identifier(children.take(P::NAME));
      if (!name)
        return error(near);
      SourceRange whole = result->range.to(name.range);
      result = std::make_unique<AttributeExpr>(whole, std::move(result), std::move(name));
      break;
    }
    case P::LPAREN: {
      std::vector<Argument> list = arguments(children.take<P::ArgumentsContext>());
      SourceRange whole = result->range.to(range(children.take(P::RPAREN)));
      result = std::make_unique<CallExpr>(whole, std::move(result), std::move(list));
      break;
    }
    case P::LBRACKET: {
      std::vector<Argument> list = arguments(children.take<P::SubscriptsContext>());
      SourceRange whole = result->range.to(range(children.take(P::RBRACKET)));
      if (list.empty())
        return error(near);
      result = std::make_unique<IndexExpr>(whole, std::move(result), std::move(list));
      break;
    }
    default:
      return error(near);
    }
  }
  return result;
}

ExprPtr Builder::atom(P::AtomContext *tree, SourceRange near) {
  Children children(tree);
  antlr4::Token *first = children.take();
  if (!first)
    return error(near);
  SourceRange place = range(first);
  std::string_view text = file.slice(place);
  switch (first->getType()) {
  case P::NAME:
    return std::make_unique<NameExpr>(place, std::string(text));
  case P::INTEGER:
    return integerLiteral(text, place, diags);
  case P::FLOAT:
    return floatLiteral(text, place, diags);
  case P::TRUE:
  case P::FALSE:
    return std::make_unique<BoolLiteral>(place, first->getType() == P::TRUE);
  case P::NONE:
    return std::make_unique<NoneLiteral>(place);
  case P::STRING: {
    // Strings side by side are one.
    std::string value;
    bool good = true;
    for (antlr4::Token *piece = first; piece; piece = children.take(P::STRING))
      good &= appendString(file.slice(range(piece)), range(piece), value, diags);
    return good ? std::make_unique<StringLiteral>(range(tree), std::move(value)) : error(range(tree));
  }
  case P::LPAREN: {
    auto *inner = children.take<P::ExpressionsContext>();
    if (!inner)
      return std::make_unique<TupleExpr>(range(tree), std::vector<ExprPtr>());
    ExprPtr result = expressions(inner, near);
    result->range = range(tree);
    return result;
  }
  case P::LBRACKET: {
    bool hasComma = false;
    std::vector<ExprPtr> elements = commaList(children.take<P::ExpressionsContext>(), hasComma);
    return std::make_unique<ListExpr>(range(tree), std::move(elements));
  }
  case P::LBRACE: {
    std::vector<DictExpr::Entry> entries;
    bool afterComma = false;
    while (!children.done()) {
      if (auto *entry = children.take<P::DictEntryContext>()) {
        Children parts(entry);
        ExprPtr key = expression(parts.take<P::ExpressionContext>(), range(entry));
        parts.take(P::COLON);
        entries.push_back({std::move(key), expression(parts.take<P::ExpressionContext>(), range(entry))});
        afterComma = false;
      } else if (antlr4::Token *comma = children.take(P::COMMA)) {
        checkComma(comma, afterComma);
        afterComma = true;
      } else {
        children.advance();
      }
    }
    return std::make_unique<DictExpr>(range(tree), std::move(entries));
  }
  default:
    return error(near);
  }
}

ExprPtr Builder::slice(ExprPtr start, P::SliceContext *tree) {
  Children children(tree);
  auto part = [&]() -> ExprPtr {
    auto *expr = children.take<P::ExpressionContext>();
    return expr ? expression(expr, range(tree)) : nullptr;
  };
  children.take(P::COLON);
  ExprPtr stop = part();
  children.take(P::COLON);
  ExprPtr step = part();
  SourceRange whole = start ? start->range.to(range(tree)) : range(tree);
  return std::make_unique<SliceExpr>(whole, std::move(start), std::move(stop), std::move(step));
}

Argument Builder::argument(antlr4::ParserRuleContext *tree) {
  Children children(tree);
  SourceRange whole = range(tree);
  Argument result;
  result.range = whole;
  if (auto *only = children.take<P::SliceContext>()) {
    result.value = slice(nullptr, only);
    return result;
  }
  result.value = expression(children.take<P::ExpressionContext>(), whole);
  if (auto *rest = children.take<P::SliceContext>()) {
    result.value = slice(std::move(result.value), rest);
  } else if (antlr4::Token *equals = children.take(P::ASSIGN)) {
    if (auto *name = result.value->as<NameExpr>())
      result.name = {name->name, name->range};
    else if (!result.value->is<ErrorExpr>())
      diags.report(diag::ExpectedToken, result.value->range, fmt::format("`{}`", file.slice(result.value->range)),
                   "the name of a parameter before `=`");
    result.value = expression(children.take<P::ExpressionContext>(), range(equals));
  }
  return result;
}

std::vector<Argument> Builder::arguments(antlr4::ParserRuleContext *tree) {
  std::vector<Argument> list;
  std::set<std::string_view> names;
  bool afterComma = false;
  for (Children children(tree); !children.done();) {
    if (antlr4::Token *comma = children.take(P::COMMA)) {
      checkComma(comma, afterComma);
      afterComma = true;
      continue;
    }
    antlr4::ParserRuleContext *item = children.take<P::ArgumentContext>();
    if (!item)
      item = children.take<P::SubscriptContext>();
    if (!item) {
      children.advance();
      continue;
    }
    afterComma = false;
    list.push_back(argument(item));
  }
  // The strings stay where they are from here on.
  const Argument *firstNamed = nullptr;
  for (const Argument &item : list) {
    if (item.name) {
      if (!names.insert(item.name.text).second) {
        auto earlier = std::find_if(list.begin(), list.end(),
                                    [&](const Argument &other) { return other.name.text == item.name.text; });
        diags.report(diag::RepeatedArgument, item.name.range, item.name.text)
            .note(diag::PreviousHere, earlier->name.range, item.name.text);
      }
      firstNamed = firstNamed ? firstNamed : &item;
    } else if (firstNamed && !item.value->is<ErrorExpr>()) {
      diags.report(diag::PositionalAfterNamed, item.range)
          .note(diag::PreviousHere, firstNamed->range, firstNamed->name.text);
    }
  }
  return list;
}
