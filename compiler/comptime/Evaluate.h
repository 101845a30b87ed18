// Evaluates comptime code: expressions and function bodies over values, with limits on steps, memory and depth.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/comptime/Environment.h"
#include "compiler/diag/Diagnostics.h"

#include <optional>

namespace kpkg::compiler {

struct ComptimeLimits {
  uint64_t steps = 1u << 22; ///< evaluated expressions and statements, for the whole program
  uint64_t items = 1u << 20; ///< items in one sequence, or bytes in one string
  unsigned depth = 128;      ///< nested calls
};

/// Evaluates comptime code. Errors are reported once, and the result is then empty.
class Evaluator {
public:
  Evaluator(DiagnosticEngine &diags, ComptimeLimits limits) : diags(diags), limits(limits) {}

  std::optional<Value> evaluate(const ast::Expr &expr, const Environment &environment);
  /// Calls a function with values for its comptime parameters and its parameters, in order.
  std::optional<Value> call(const FunctionEntity &function, std::vector<Value> comptimeArguments,
                            std::vector<Value> arguments, SourceRange range);

private:
  class Frame;
  enum class Flow { Normal, Break, Continue, Return, Failed };

  std::optional<Value> callee(const ast::CallExpr &call, const Environment &environment);
  /// Evaluates `target.has("gpu")`.
  std::optional<Value> targetQuery(const ast::AttributeExpr &method, const ast::CallExpr &call,
                                   const Environment &environment);
  std::optional<Value> callBound(const FunctionEntity &function, const std::vector<ast::Argument> &comptimeArguments,
                                 const std::vector<ast::Argument> &arguments, const Environment &environment,
                                 SourceRange range, const Value *self = nullptr);
  std::optional<Value> callValue(const Value &function, const std::vector<ast::Argument> &comptimeArguments,
                                 const ast::CallExpr &call, const Environment &environment);
  template <typename Parameter>
  bool bind(const std::string &callee, const std::vector<Parameter> &parameters, size_t first,
            const std::vector<ast::Argument> &given, const Environment &environment, Frame &names, SourceRange range,
            std::vector<Value> &values);
  std::optional<Value> construct(const StructEntity &entity, const std::vector<ast::Argument> &comptimeArguments,
                                 const std::vector<ast::Argument> &arguments, const Environment &environment,
                                 SourceRange range);
  /// Returns the struct `base` with another value of a member.
  std::optional<Value> withField(const Value &base, size_t number, Value value, SourceRange range);
  std::optional<Value> name(const ast::NameExpr &expr, const Environment &environment);
  std::optional<Value> unary(const ast::UnaryExpr &expr, const Environment &environment);
  std::optional<Value> binary(const ast::BinaryExpr &expr, const Environment &environment);
  std::optional<Value> attribute(const ast::AttributeExpr &expr, const Environment &environment);
  std::optional<Value> logical(const ast::LogicalExpr &expr, const Environment &environment);
  std::optional<Value> compare(const ast::CompareExpr &expr, const Environment &environment);
  std::optional<Value> index(const ast::IndexExpr &expr, const Environment &environment);
  std::optional<Value> sequence(const std::vector<ast::ExprPtr> &elements, bool isList, const Environment &environment);
  std::optional<bool> condition(const ast::Expr &expr, const Environment &environment);

  Flow run(const ast::Block &block, Frame &frame);
  Flow run(const ast::Stmt &stmt, Frame &frame);
  Flow runIf(const ast::IfStmt &stmt, Frame &frame);
  Flow runFor(const ast::ForStmt &stmt, Frame &frame);
  Flow runWhile(const ast::WhileStmt &stmt, Frame &frame);
  Flow runVar(const ast::VarStmt &stmt, Frame &frame);
  Flow runAugmented(const ast::AugmentedStmt &stmt, Frame &frame);
  Flow runReturn(const ast::ReturnStmt &stmt, Frame &frame);
  Flow assign(const ast::Expr &target, Value value, Frame &frame);
  Flow runCallStatement(const ast::Expr &expr, Frame &frame);
  Flow runAssert(const ast::ComptimeAssertStmt &stmt, Frame &frame);

  /// Counts a step. Returns false, after one report, if there are too many.
  bool step(SourceRange range);
  std::optional<Value> fail(SourceRange range, const std::string &why);

  DiagnosticEngine &diags;
  ComptimeLimits limits;
  uint64_t stepsTaken = 0;
  bool limitReported = false;
  unsigned depth = 0;
};

} // namespace kpkg::compiler
