// Declares statements, functions and the module of the syntax tree.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Expr.h"
#include <optional>

namespace kpkg::compiler::ast {

enum class StmtKind : uint8_t {
#define STMT(Name) Name,
#include "compiler/ast/Kinds.def"
};
std::string_view name(StmtKind kind);

/// Base of all statements; use it like Expr. `range` covers the whole statement, including its block.
class Stmt {
public:
  const StmtKind kind;
  SourceRange range;
  virtual ~Stmt() = default;
  template <typename T> bool is() const { return kind == T::staticKind; }
  template <typename T> const T *as() const { return is<T>() ? static_cast<const T *>(this) : nullptr; }
  template <typename T> T *as() { return is<T>() ? static_cast<T *>(this) : nullptr; }

protected:
  Stmt(StmtKind kind, SourceRange range) : kind(kind), range(range) {}
};
using StmtPtr = std::unique_ptr<Stmt>;
using Block = std::vector<StmtPtr>;

template <StmtKind Kind> class StmtOf : public Stmt {
public:
  static constexpr StmtKind staticKind = Kind;
  static bool classof(const Stmt *stmt) { return stmt->kind == Kind; }
  explicit StmtOf(SourceRange range) : Stmt(Kind, range) {}
};

/// `var a: T = e`, `var a, b = e`. With several names `type` is null and `value` is not.
struct VarStmt : StmtOf<StmtKind::VarStmt> {
  using StmtOf::StmtOf;
  std::vector<Identifier> names; // at least one
  ExprPtr type;                  // may be null
  ExprPtr value;                 // may be null when the type is given
};

/// `target = value`. The target is a NameExpr, IndexExpr, AttributeExpr or a TupleExpr of them (the parser checks).
struct AssignStmt : StmtOf<StmtKind::AssignStmt> {
  using StmtOf::StmtOf;
  ExprPtr target, value;
};

/// `target op= value`.
struct AugmentedStmt : StmtOf<StmtKind::AugmentedStmt> {
  using StmtOf::StmtOf;
  BinaryOp op{};
  SourceRange opRange;
  ExprPtr target, value;
};

struct ExprStmt : StmtOf<StmtKind::ExprStmt> {
  using StmtOf::StmtOf;
  ExprPtr value;
};

/// `if` with its `elif` branches in order and the `else` block. `comptime if` selects at compile time; other blocks are
/// not checked further.
struct IfStmt : StmtOf<StmtKind::IfStmt> {
  using StmtOf::StmtOf;
  struct Branch {
    ExprPtr condition;
    Block body;
  };
  bool isComptime = false;
  std::vector<Branch> branches; // at least one
  std::optional<Block> elseBody;
};

/// `for a, b in iterable:`. `comptime for` is unrolled at compile time.
struct ForStmt : StmtOf<StmtKind::ForStmt> {
  using StmtOf::StmtOf;
  bool isComptime = false;
  std::vector<Identifier> targets; // at least one
  ExprPtr iterable;
  Block body;
};

struct WhileStmt : StmtOf<StmtKind::WhileStmt> {
  using StmtOf::StmtOf;
  ExprPtr condition;
  Block body;
};

struct BreakStmt : StmtOf<StmtKind::BreakStmt> {
  using StmtOf::StmtOf;
};
struct ContinueStmt : StmtOf<StmtKind::ContinueStmt> {
  using StmtOf::StmtOf;
};
struct PassStmt : StmtOf<StmtKind::PassStmt> {
  using StmtOf::StmtOf;
};

struct ReturnStmt : StmtOf<StmtKind::ReturnStmt> {
  using StmtOf::StmtOf;
  ExprPtr value; // may be null
};

struct RaiseStmt : StmtOf<StmtKind::RaiseStmt> {
  using StmtOf::StmtOf;
  ExprPtr value;
};

/// `comptime N: Int = e`, in a module or a block.
struct ComptimeConstStmt : StmtOf<StmtKind::ComptimeConstStmt> {
  using StmtOf::StmtOf;
  Identifier name;
  ExprPtr type; // may be null
  ExprPtr value;
};

struct ComptimeAssertStmt : StmtOf<StmtKind::ComptimeAssertStmt> {
  using StmtOf::StmtOf;
  ExprPtr condition;
  ExprPtr message; // may be null
};

/// `launch kernel[parameters](arguments, grid=...)`; `grid` is one of the arguments.
struct LaunchStmt : StmtOf<StmtKind::LaunchStmt> {
  using StmtOf::StmtOf;
  ExprPtr kernel; // a NameExpr, or an AttributeExpr of an imported module
  std::vector<Argument> parameters;
  std::vector<Argument> arguments;
};

/// `import a.b as c` (`names` empty) or `from a.b import x as y, z`.
struct ImportStmt : StmtOf<StmtKind::ImportStmt> {
  using StmtOf::StmtOf;
  struct Name {
    Identifier name;
    Identifier alias; // empty text when there is none
  };
  std::vector<Identifier> module; // the parts between the dots
  Identifier alias;               // of the module; empty text when there is none
  bool isFrom = false;
  std::vector<Name> names;
};

/// `@name.part(arguments)` or `@name.part`.
struct Decorator {
  std::string name; // "register.op", "kernel", ...
  SourceRange nameRange;
  SourceRange range; // includes the arguments
  bool hasArguments = false;
  std::vector<Argument> arguments;
};

/// A parameter in [...]: `T: DType`, `BM: Int = 64`, `score: Function = identity`.
struct ComptimeParameter {
  Identifier name;
  ExprPtr type;         // may be null: inferred from the default
  ExprPtr defaultValue; // may be null
  SourceRange range;
};

/// A parameter in (...): `mut y: Tensor[T, 2]`, `alpha: Float32 = 1.0`, `x`.
struct Parameter {
  Identifier name;
  bool isMut = false;
  ExprPtr type;         // may be null: any type (inline functions are then instantiated per call)
  ExprPtr defaultValue; // may be null
  SourceRange range;
};

/// A function. The checker interprets its decorators.
struct FunctionStmt : StmtOf<StmtKind::FunctionStmt> {
  using StmtOf::StmtOf;
  std::vector<Decorator> decorators;
  Identifier name;
  std::vector<ComptimeParameter> comptimeParameters;
  std::vector<Parameter> parameters;
  bool raises = false;
  ExprPtr resultType;         // may be null
  std::string doc;            // the docstring with its common indentation removed
  Block body;                 // without the docstring
  SourceRange signatureRange; // from `def` to the `:`

  const Decorator *findDecorator(std::string_view decoratorName) const {
    for (const Decorator &decorator : decorators)
      if (decorator.name == decoratorName)
        return &decorator;
    return nullptr;
  }
};

/// `struct Window[SIZE: Int]:` with its fields and methods.
struct StructStmt : StmtOf<StmtKind::StructStmt> {
  using StmtOf::StmtOf;
  Identifier name;
  std::vector<ComptimeParameter> comptimeParameters;
  std::vector<Parameter> fields; // each `var name: type = default`
  std::vector<std::unique_ptr<FunctionStmt>> methods;
  std::string doc;
  SourceRange signatureRange; // from `struct` to the `:`
};

/// One file. `body` holds ImportStmt, ComptimeConstStmt, ComptimeAssertStmt, IfStmt (comptime), FunctionStmt and
/// StructStmt.
struct Module {
  uint32_t file = SourceRange::noFile;
  std::string doc;
  Block body;
};

} // namespace kpkg::compiler::ast
