// Builds the syntax tree from the parse tree.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "KParser.h"
#include "compiler/ast/Stmt.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/syntax/Layout.h"
#include <typeinfo>

namespace kpkg::compiler {

/// Iterates over the children of a rule in order. Nodes that error recovery created or skipped are passed over. Any
/// child may thus be missing, and every function here may return null.
class Children {
public:
  explicit Children(antlr4::ParserRuleContext *context) : context(context) { settle(); }
  bool done() const { return !current; }
  /// Returns the type of the next token; 0 if the next child is a rule or there is none.
  size_t type() const { return token ? token->getType() : 0; }
  /// Moves past the next child; null if it is not a token.
  antlr4::Token *take() {
    antlr4::Token *taken = token;
    advance();
    return taken;
  }
  /// Takes the next child if it is a token of this type.
  antlr4::Token *take(size_t type) { return this->type() == type ? take() : nullptr; }
  /// Returns the next child if it is this rule, without taking it.
  template <typename Rule> Rule *peek() const {
    // Rules have no subclasses, and dynamic_cast would take a quarter of the parser's time.
    return current && !token && typeid(*current) == typeid(Rule) ? static_cast<Rule *>(current) : nullptr;
  }
  /// Takes the next child if it is this rule.
  template <typename Rule> Rule *take() {
    Rule *rule = peek<Rule>();
    if (rule)
      advance();
    return rule;
  }
  void advance() {
    ++index;
    settle();
  }

private:
  antlr4::ParserRuleContext *context;
  size_t index = 0;
  antlr4::tree::ParseTree *current = nullptr;
  antlr4::Token *token = nullptr;

  void settle();
};

/// Builds the tree, and checks what the grammar cannot: targets, order of arguments, positions of statements.
class Builder {
public:
  Builder(const SourceFile &file, const CodePoints &places, DiagnosticEngine &diags)
      : file(file), places(places), diags(diags) {}

  ast::Module module(grammar::KParser::ModuleContext &tree);

private:
  using P = grammar::KParser;
  const SourceFile &file;
  const CodePoints &places;
  DiagnosticEngine &diags;
  bool inFunction = false;
  bool inStruct = false;   ///< directly, not in one of its methods
  bool hasOldWord = false; ///< A function of the file is declared with `fn`.
  bool inDecorator = false;
  unsigned loops = 0;

  SourceRange range(const antlr4::Token *token) const;
  SourceRange range(const antlr4::ParserRuleContext *context) const;
  ast::Identifier identifier(const antlr4::Token *token) const;

  // BuildExpr.cpp. `near` is the place of ErrorExpr for missing text.
  ast::ExprPtr error(SourceRange near) const { return std::make_unique<ast::ErrorExpr>(near); }
  ast::ExprPtr expressions(P::ExpressionsContext *tree, SourceRange near);
  std::vector<ast::ExprPtr> commaList(P::ExpressionsContext *tree, bool &hasComma);
  ast::ExprPtr expression(P::ExpressionContext *tree, SourceRange near);
  ast::ExprPtr operand(P::OperandContext *tree, SourceRange near);
  ast::ExprPtr atom(Children &children, SourceRange near);
  ast::ExprPtr dict(Children &children, antlr4::Token *brace);
  ast::ExprPtr slice(ast::ExprPtr start, P::SliceContext *tree);
  ast::Argument argument(antlr4::ParserRuleContext *tree);
  std::vector<ast::Argument> arguments(antlr4::ParserRuleContext *tree);
  /// Reports two adjacent commas in a list that allows one comma at its end.
  void checkComma(const antlr4::Token *comma, bool afterComma);

  // BuildOperation.cpp: precedence. `weakest` is the level of the operator on the left.
  ast::ExprPtr operation(P::OperationContext *tree, SourceRange near);
  ast::ExprPtr binary(Children &children, unsigned weakest, SourceRange near);
  ast::ExprPtr prefixed(Children &children, unsigned weakest, SourceRange near);
  ast::ExprPtr comparison(ast::ExprPtr first, Children &children, SourceRange near);

  // BuildStmt.cpp. Statements are appended to the block; unparsable statements are omitted.
  void statement(P::StatementContext *tree, ast::Block &block);
  void simple(P::SimpleStatementContext *tree, ast::Block &block);
  ast::Block block(P::BlockContext *tree);
  ast::Block statements(P::StatementsContext *tree);
  ast::StmtPtr variable(P::VariableContext *tree);
  ast::StmtPtr expressionStatement(P::ExpressionStatementContext *tree);
  ast::StmtPtr launch(P::LaunchStatementContext *tree);
  ast::StmtPtr import(P::ImportStatementContext *tree);
  ast::StmtPtr from(P::FromStatementContext *tree);
  ast::StmtPtr ifStatement(P::IfStatementContext *tree, bool isComptime);
  ast::StmtPtr forStatement(P::ForStatementContext *tree, bool isComptime);
  ast::StmtPtr whileStatement(P::WhileStatementContext *tree);
  ast::StmtPtr comptimeStatement(P::ComptimeStatementContext *tree);
  ast::Block loopBody(P::BlockContext *tree);
  std::vector<ast::Identifier> modulePath(P::ModulePathContext *tree);
  void checkTarget(const ast::Expr &target, bool allowTuple);
  /// Reports statements that are only allowed in functions.
  void checkPlaces(const ast::Block &moduleBody);

  // BuildFunction.cpp
  ast::StmtPtr definition(P::DefinitionContext *tree);
  std::unique_ptr<ast::FunctionStmt> function(P::FunctionContext *tree, SourceRange whole);
  /// Converts `where condition` or `where (condition, "message")` after a signature to an assertion at the start of the
  /// body.
  ast::StmtPtr constraint(P::ExpressionContext *tree, SourceRange word);
  ast::Decorator decorator(P::DecoratorContext *tree);
  /// Parses a list of `name: type = default`, each a `Rule`.
  template <typename Rule, typename Item> std::vector<Item> parameterList(antlr4::ParserRuleContext *tree);
  std::vector<ast::ComptimeParameter> comptimeParameters(P::ComptimeParametersContext *tree);
  std::vector<ast::Parameter> parameters(P::ParametersContext *tree);
  // BuildStruct.cpp
  ast::StmtPtr structure(P::StructureContext *tree, const std::vector<ast::Decorator> &decorators, SourceRange whole);
  void member(ast::StmtPtr statement, ast::StructStmt &declared);
  /// Removes the docstring from the front of a block and returns it.
  static std::string takeDocstring(ast::Block &block);
};

} // namespace kpkg::compiler
