// Builds syntax trees of structs: fields, methods, docstring.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Builder.h"

using namespace kpkg::compiler;
using namespace kpkg::compiler::ast;

StmtPtr Builder::structure(P::StructureContext *tree, const std::vector<Decorator> &decorators, SourceRange whole) {
  auto declared = std::make_unique<StructStmt>(whole);
  for (const Decorator &decorator : decorators)
    diags
        .report(diag::NotInLanguage, decorator.range, "@" + decorator.name,
                "every struct is constructed from its fields, in order or by name")
        .fix(decorator.range, "");
  Children children(tree);
  antlr4::Token *word = children.take(P::STRUCT);
  declared->name = identifier(children.take(P::NAME));
  declared->signatureRange = range(word).to(declared->name.range);
  auto *parameters = children.take<P::ComptimeParametersContext>();
  declared->comptimeParameters = comptimeParameters(parameters);
  if (parameters)
    declared->signatureRange = declared->signatureRange.to(range(parameters));
  if (antlr4::Token *opener = children.take(P::LPAREN)) {
    children.take<P::ArgumentsContext>();
    SourceRange traits = range(opener).to(range(children.take(P::RPAREN)));
    diags.report(diag::NotInLanguage, traits, file.slice(traits), "a struct has no traits: all are copied and moved")
        .fix(traits, "");
  }
  if ((inFunction || inStruct) && declared->name)
    diags.report(diag::NestedStruct, declared->name.range, declared->name.text,
                 inFunction ? "a function" : "another struct");
  bool outerInFunction = std::exchange(inFunction, false), outerInStruct = std::exchange(inStruct, true);
  unsigned outerLoops = std::exchange(loops, 0);
  Block body = block(children.take<P::BlockContext>());
  inFunction = outerInFunction;
  inStruct = outerInStruct;
  loops = outerLoops;
  declared->doc = takeDocstring(body);
  for (StmtPtr &statement : body)
    member(std::move(statement), *declared);
  return declared->name ? std::move(declared) : nullptr;
}

void Builder::member(StmtPtr statement, StructStmt &declared) {
  if (statement->is<FunctionStmt>()) {
    declared.methods.emplace_back(static_cast<FunctionStmt *>(statement.release()));
    return;
  }
  auto *field = statement->as<VarStmt>();
  if (field && field->names.size() == 1) {
    Parameter &added = declared.fields.emplace_back();
    added.name = field->names[0];
    added.type = std::move(field->type);
    added.defaultValue = std::move(field->value);
    added.range = field->range;
    return;
  }
  switch (statement->kind) {
  case StmtKind::PassStmt:
  case StmtKind::BreakStmt: // reported as outside a loop or a function
  case StmtKind::ContinueStmt:
  case StmtKind::ReturnStmt:
  case StmtKind::RaiseStmt:
  case StmtKind::LaunchStmt:
  case StmtKind::StructStmt: // reported as nested
    return;
  case StmtKind::ExprStmt:
    if (statement->as<ExprStmt>()->value->is<ErrorExpr>())
      return;
    break;
  default:
    break;
  }
  diags.report(diag::NotInStruct, statement->range, field ? "a `var` of several names" : "this statement");
}
