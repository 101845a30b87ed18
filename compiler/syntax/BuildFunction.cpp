// Builds syntax trees of functions: decorators, parameters, docstring.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Builder.h"
#include "compiler/syntax/Literals.h"

using namespace kpkg::compiler;
using namespace kpkg::compiler::ast;

StmtPtr Builder::definition(P::DefinitionContext *tree) {
  Children children(tree);
  SourceRange whole = range(tree);
  std::vector<Decorator> decorators;
  while (auto *item = children.take<P::DecoratorContext>())
    decorators.push_back(decorator(item));
  if (auto *rule = children.take<P::StructureContext>())
    return structure(rule, decorators, whole);
  auto *rule = children.take<P::FunctionContext>();
  if (!rule)
    return nullptr;
  std::unique_ptr<FunctionStmt> fn = function(rule, whole);
  fn->decorators = std::move(decorators);
  return fn;
}

std::unique_ptr<FunctionStmt> Builder::function(P::FunctionContext *tree, SourceRange whole) {
  auto fn = std::make_unique<FunctionStmt>(whole);
  Children children(tree);
  antlr4::Token *word = children.take();
  if (word && word->getType() == P::FN && !std::exchange(hasOldWord, true))
    diags.report(diag::FnIsDef, range(word)).fix(range(word), "def");
  fn->name = identifier(children.take(P::NAME));
  fn->signatureRange = range(word).to(fn->name.range);
  fn->comptimeParameters = comptimeParameters(children.take<P::ComptimeParametersContext>());
  children.take(P::LPAREN);
  fn->parameters = parameters(children.take<P::ParametersContext>());
  fn->signatureRange = fn->signatureRange.to(range(children.take(P::RPAREN)));
  if (antlr4::Token *raises = children.take(P::RAISES)) {
    fn->raises = true;
    fn->signatureRange = fn->signatureRange.to(range(raises));
  }
  if (antlr4::Token *arrow = children.take(P::ARROW)) {
    fn->resultType = expression(children.take<P::ExpressionContext>(), range(arrow));
    fn->signatureRange = fn->signatureRange.to(fn->resultType->range);
  }
  StmtPtr assertion;
  if (antlr4::Token *where = children.take(P::WHERE))
    assertion = constraint(children.take<P::ExpressionContext>(), range(where));
  if (inFunction && fn->name)
    diags.report(diag::NestedFunction, fn->name.range, fn->name.text);
  bool outerInFunction = std::exchange(inFunction, true), outerInStruct = std::exchange(inStruct, false);
  unsigned outerLoops = std::exchange(loops, 0);
  fn->body = block(children.take<P::BlockContext>());
  inFunction = outerInFunction;
  inStruct = outerInStruct;
  loops = outerLoops;
  fn->doc = takeDocstring(fn->body);
  if (assertion)
    fn->body.insert(fn->body.begin(), std::move(assertion));
  return fn;
}

StmtPtr Builder::constraint(P::ExpressionContext *tree, SourceRange word) {
  auto assertion = std::make_unique<ComptimeAssertStmt>(word);
  assertion->condition = expression(tree, word);
  assertion->range = word.to(assertion->condition->range);
  auto *pair = assertion->condition->as<TupleExpr>();
  if (pair && pair->elements.size() == 2) {
    assertion->message = std::move(pair->elements[1]);
    assertion->condition = std::move(pair->elements[0]);
  }
  return assertion;
}

std::string Builder::takeDocstring(Block &block) {
  auto *first = block.empty() ? nullptr : block.front()->as<ExprStmt>();
  auto *text = first ? first->value->as<StringLiteral>() : nullptr;
  if (!text)
    return {};
  std::string doc = dedentDocstring(text->value);
  block.erase(block.begin());
  return doc;
}

Decorator Builder::decorator(P::DecoratorContext *tree) {
  Decorator result;
  Children children(tree);
  antlr4::Token *at = children.take(P::AT);
  result.range = range(at);
  do {
    Identifier part = identifier(children.take(P::NAME));
    result.name += (result.name.empty() ? "" : ".") + part.text;
    result.nameRange = result.nameRange.to(part.range);
  } while (children.take(P::DOT));
  result.range = result.range.to(result.nameRange);
  if (children.take(P::LPAREN)) {
    result.hasArguments = true;
    inDecorator = true;
    result.arguments = arguments(children.take<P::ArgumentsContext>());
    inDecorator = false;
    result.range = result.range.to(range(children.take(P::RPAREN)));
  }
  return result;
}

template <typename Rule, typename Item> std::vector<Item> Builder::parameterList(antlr4::ParserRuleContext *tree) {
  std::vector<Item> list;
  bool afterComma = false;
  for (Children children(tree); !children.done();) {
    auto *item = children.take<Rule>();
    if (!item) {
      bool isComma = children.type() == P::COMMA;
      checkComma(isComma ? children.take() : (children.advance(), nullptr), afterComma);
      afterComma = isComma;
      continue;
    }
    afterComma = false;
    Item parameter;
    parameter.range = range(item);
    Children parts(item);
    if constexpr (std::is_same_v<Item, Parameter>)
      parameter.isMut = parts.take(P::MUT);
    parameter.name = identifier(parts.take(P::NAME));
    if (parts.take(P::COLON))
      parameter.type = expression(parts.take<P::ExpressionContext>(), parameter.range);
    if (parts.take(P::ASSIGN))
      parameter.defaultValue = expression(parts.take<P::ExpressionContext>(), parameter.range);
    if (parameter.name)
      list.push_back(std::move(parameter));
  }
  return list;
}

std::vector<ComptimeParameter> Builder::comptimeParameters(P::ComptimeParametersContext *tree) {
  return parameterList<P::ComptimeParameterContext, ComptimeParameter>(tree);
}

std::vector<Parameter> Builder::parameters(P::ParametersContext *tree) {
  return parameterList<P::ParameterContext, Parameter>(tree);
}
