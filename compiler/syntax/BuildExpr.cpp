// Builds syntax trees of expressions.
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
    if (typeid(*child) == typeid(antlr4::tree::ErrorNodeImpl))
      continue;
    current = child;
    if (typeid(*child) == typeid(antlr4::tree::TerminalNodeImpl))
      token = static_cast<antlr4::tree::TerminalNode *>(child)->getSymbol();
    return;
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
  // Folds value (IF condition ELSE value)* from the right.
  std::vector<ExprPtr> parts;
  parts.push_back(operation(children.take<P::OperationContext>(), near));
  while (children.take(P::IF)) {
    parts.push_back(operation(children.take<P::OperationContext>(), near));
    children.take(P::ELSE);
    parts.push_back(operation(children.take<P::OperationContext>(), near));
  }
  while (parts.size() > 1) {
    ExprPtr elseValue = std::move(parts.back());
    parts.pop_back();
    ExprPtr condition = std::move(parts.back());
    parts.pop_back();
    ExprPtr &thenValue = parts.back();
    SourceRange whole = thenValue->range.to(elseValue->range);
    thenValue =
        std::make_unique<ConditionalExpr>(whole, std::move(condition), std::move(thenValue), std::move(elseValue));
  }
  return std::move(parts.front());
}

ExprPtr Builder::operand(P::OperandContext *tree, SourceRange near) {
  Children children(tree);
  if (tree)
    near = range(tree);
  ExprPtr result = atom(children, near);
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

ExprPtr Builder::atom(Children &children, SourceRange near) {
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
    // Adjacent strings are concatenated.
    std::string value;
    bool good = true;
    for (antlr4::Token *piece = first; piece; piece = children.take(P::STRING)) {
      SourceRange part = range(piece);
      good &= appendString(file.slice(part), part, value, diags);
      place = place.to(part);
    }
    return good ? std::make_unique<StringLiteral>(place, std::move(value)) : error(place);
  }
  case P::LPAREN: {
    auto *inner = children.take<P::ExpressionsContext>();
    place = place.to(range(children.take(P::RPAREN)));
    if (!inner)
      return std::make_unique<TupleExpr>(place, std::vector<ExprPtr>());
    ExprPtr result = expressions(inner, near);
    result->range = place;
    return result;
  }
  case P::LBRACKET: {
    bool hasComma = false;
    std::vector<ExprPtr> elements = commaList(children.take<P::ExpressionsContext>(), hasComma);
    place = place.to(range(children.take(P::RBRACKET)));
    return std::make_unique<ListExpr>(place, std::move(elements));
  }
  case P::LBRACE:
    return dict(children, first);
  default:
    return error(near);
  }
}

ExprPtr Builder::dict(Children &children, antlr4::Token *brace) {
  std::vector<DictExpr::Entry> entries;
  SourceRange whole = range(brace);
  bool afterComma = false;
  while (!children.done()) {
    if (antlr4::Token *closer = children.take(P::RBRACE)) {
      whole = whole.to(range(closer));
      break;
    }
    if (auto *entry = children.take<P::DictEntryContext>()) {
      Children parts(entry);
      ExprPtr key = expression(parts.take<P::ExpressionContext>(), range(entry));
      parts.take(P::COLON);
      entries.push_back({std::move(key), expression(parts.take<P::ExpressionContext>(), range(entry))});
      afterComma = false;
      continue;
    }
    checkComma(children.take(), afterComma);
    afterComma = true;
  }
  return std::make_unique<DictExpr>(whole, std::move(entries));
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

/// Returns `w.SIZE` as a text; an empty one for expressions that are no such path.
static std::string dottedName(const Expr &expr) {
  if (auto *name = expr.as<NameExpr>())
    return name->name;
  auto *attribute = expr.as<AttributeExpr>();
  std::string base = attribute ? dottedName(*attribute->base) : "";
  return base.empty() ? base : base + "." + attribute->attribute.text;
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
  if (children.take(P::ELLIPSIS)) {
    result.value = std::make_unique<EllipsisExpr>(whole);
    return result;
  }
  result.value = expression(children.take<P::ExpressionContext>(), whole);
  if (auto *rest = children.take<P::SliceContext>()) {
    result.value = slice(std::move(result.value), rest);
  } else if (antlr4::Token *equals = children.take(P::ASSIGN)) {
    if (std::string name = inDecorator ? dottedName(*result.value) : ""; !name.empty())
      result.name = {name, result.value->range};
    else if (auto *name = result.value->as<NameExpr>())
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
  // The strings do not move from here on.
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
