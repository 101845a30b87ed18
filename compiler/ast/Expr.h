// Declares the expressions of the syntax tree.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/source/Source.h"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::compiler::ast {

enum class ExprKind : uint8_t {
#define EXPR(Name) Name,
#include "compiler/ast/Kinds.def"
};
std::string_view name(ExprKind kind);

/// A name as written, with its source range.
struct Identifier {
  std::string text;
  SourceRange range;
  explicit operator bool() const { return !text.empty(); }
};

/// Base of all expressions. Children are never null unless a member says "may be null". Types are expressions too
/// (`Tensor[T, 2]` is an IndexExpr).
///
/// Use `e->as<CallExpr>()` (null for other kinds) and `e->is<CallExpr>()`; classof serves llvm::dyn_cast.
class Expr {
public:
  const ExprKind kind;
  SourceRange range;
  virtual ~Expr() = default;
  template <typename T> bool is() const { return kind == T::staticKind; }
  template <typename T> const T *as() const { return is<T>() ? static_cast<const T *>(this) : nullptr; }
  template <typename T> T *as() { return is<T>() ? static_cast<T *>(this) : nullptr; }

protected:
  Expr(ExprKind kind, SourceRange range) : kind(kind), range(range) {}
};
using ExprPtr = std::unique_ptr<Expr>;

/// Gives each node class its kind.
template <ExprKind Kind> class ExprOf : public Expr {
public:
  static constexpr ExprKind staticKind = Kind;
  static bool classof(const Expr *expr) { return expr->kind == Kind; }
  explicit ExprOf(SourceRange range) : Expr(Kind, range) {}
};

/// Never negative: a minus sign is a UnaryExpr, so -9223372036854775808 has the value 2^63 here.
struct IntLiteral : ExprOf<ExprKind::IntLiteral> {
  uint64_t value;
  IntLiteral(SourceRange range, uint64_t value) : ExprOf(range), value(value) {}
};

struct FloatLiteral : ExprOf<ExprKind::FloatLiteral> {
  double value;
  FloatLiteral(SourceRange range, double value) : ExprOf(range), value(value) {}
};

/// `value` is UTF-8 with its escapes resolved.
struct StringLiteral : ExprOf<ExprKind::StringLiteral> {
  std::string value;
  StringLiteral(SourceRange range, std::string value) : ExprOf(range), value(std::move(value)) {}
};

struct BoolLiteral : ExprOf<ExprKind::BoolLiteral> {
  bool value;
  BoolLiteral(SourceRange range, bool value) : ExprOf(range), value(value) {}
};

struct NoneLiteral : ExprOf<ExprKind::NoneLiteral> {
  using ExprOf::ExprOf;
};

struct NameExpr : ExprOf<ExprKind::NameExpr> {
  std::string name;
  NameExpr(SourceRange range, std::string name) : ExprOf(range), name(std::move(name)) {}
};

enum class UnaryOp : uint8_t { Plus, Minus, Invert, Not };
std::string_view spelling(UnaryOp op);

struct UnaryExpr : ExprOf<ExprKind::UnaryExpr> {
  UnaryOp op;
  ExprPtr operand;
  UnaryExpr(SourceRange range, UnaryOp op, ExprPtr operand) : ExprOf(range), op(op), operand(std::move(operand)) {}
};

enum class BinaryOp : uint8_t { Add, Sub, Mul, Div, FloorDiv, Mod, Pow, BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight };
/// "+", "//", ...
std::string_view spelling(BinaryOp op);

struct BinaryExpr : ExprOf<ExprKind::BinaryExpr> {
  BinaryOp op;
  SourceRange opRange;
  ExprPtr lhs, rhs;
  BinaryExpr(SourceRange range, BinaryOp op, SourceRange opRange, ExprPtr lhs, ExprPtr rhs)
      : ExprOf(range), op(op), opRange(opRange), lhs(std::move(lhs)), rhs(std::move(rhs)) {}
};

/// `and`, `or`: the right side is evaluated only if it decides the result.
struct LogicalExpr : ExprOf<ExprKind::LogicalExpr> {
  bool isAnd;
  ExprPtr lhs, rhs;
  LogicalExpr(SourceRange range, bool isAnd, ExprPtr lhs, ExprPtr rhs)
      : ExprOf(range), isAnd(isAnd), lhs(std::move(lhs)), rhs(std::move(rhs)) {}
};

enum class CompareOp : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Is, IsNot, In, NotIn };
std::string_view spelling(CompareOp op);

/// `first op0 rest0 op1 rest1 ...`: a chain is the conjunction of its adjacent comparisons. Each operand is evaluated
/// once.
struct CompareExpr : ExprOf<ExprKind::CompareExpr> {
  struct Link {
    CompareOp op;
    SourceRange opRange;
    ExprPtr rhs;
  };
  ExprPtr first;
  std::vector<Link> links; // at least one
  CompareExpr(SourceRange range, ExprPtr first, std::vector<Link> links)
      : ExprOf(range), first(std::move(first)), links(std::move(links)) {}
};

/// `thenValue if condition else elseValue`.
struct ConditionalExpr : ExprOf<ExprKind::ConditionalExpr> {
  ExprPtr condition, thenValue, elseValue;
  ConditionalExpr(SourceRange range, ExprPtr condition, ExprPtr thenValue, ExprPtr elseValue)
      : ExprOf(range), condition(std::move(condition)), thenValue(std::move(thenValue)),
        elseValue(std::move(elseValue)) {}
};

/// An argument in (...) or [...], positional if `name` is empty. Positional arguments come first (the parser checks).
struct Argument {
  Identifier name;
  ExprPtr value;
  SourceRange range; // name and value
};

struct CallExpr : ExprOf<ExprKind::CallExpr> {
  ExprPtr callee;
  std::vector<Argument> arguments;
  CallExpr(SourceRange range, ExprPtr callee, std::vector<Argument> arguments)
      : ExprOf(range), callee(std::move(callee)), arguments(std::move(arguments)) {}
};

/// `base[...]`: comptime parameters of a function or type, or indices of a value. The checker decides which.
struct IndexExpr : ExprOf<ExprKind::IndexExpr> {
  ExprPtr base;
  std::vector<Argument> arguments; // at least one; values may be SliceExpr or EllipsisExpr
  IndexExpr(SourceRange range, ExprPtr base, std::vector<Argument> arguments)
      : ExprOf(range), base(std::move(base)), arguments(std::move(arguments)) {}
};

/// `start:stop:step`; each part may be null.
struct SliceExpr : ExprOf<ExprKind::SliceExpr> {
  ExprPtr start, stop, step;
  SliceExpr(SourceRange range, ExprPtr start, ExprPtr stop, ExprPtr step)
      : ExprOf(range), start(std::move(start)), stop(std::move(stop)), step(std::move(step)) {}
};

/// `...`: all dimensions that the other items of an index leave.
struct EllipsisExpr : ExprOf<ExprKind::EllipsisExpr> {
  explicit EllipsisExpr(SourceRange range) : ExprOf(range) {}
};

struct AttributeExpr : ExprOf<ExprKind::AttributeExpr> {
  ExprPtr base;
  Identifier attribute;
  AttributeExpr(SourceRange range, ExprPtr base, Identifier attribute)
      : ExprOf(range), base(std::move(base)), attribute(std::move(attribute)) {}
};

/// `()`, `(x,)`, `(x, y)`, also without parentheses. `(x)` is x itself.
struct TupleExpr : ExprOf<ExprKind::TupleExpr> {
  std::vector<ExprPtr> elements;
  TupleExpr(SourceRange range, std::vector<ExprPtr> elements) : ExprOf(range), elements(std::move(elements)) {}
};

struct ListExpr : ExprOf<ExprKind::ListExpr> {
  std::vector<ExprPtr> elements;
  ListExpr(SourceRange range, std::vector<ExprPtr> elements) : ExprOf(range), elements(std::move(elements)) {}
};

/// `{key: value, ...}` in the arguments of decorators.
struct DictExpr : ExprOf<ExprKind::DictExpr> {
  struct Entry {
    ExprPtr key, value;
  };
  std::vector<Entry> entries;
  DictExpr(SourceRange range, std::vector<Entry> entries) : ExprOf(range), entries(std::move(entries)) {}
};

/// Marks where the parser reported an error and continued. Treat it as poison: report nothing about it.
struct ErrorExpr : ExprOf<ExprKind::ErrorExpr> {
  using ExprOf::ExprOf;
};

} // namespace kpkg::compiler::ast
