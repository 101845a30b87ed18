// What kernels and ops share on their way to IR: variables become SSA values, control flow becomes scf, scalars and
// tiles arith.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Hir.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kpkg::compiler {

class SourceManager;

/// The place in the source as IR keeps it.
mlir::Location locationOf(mlir::OpBuilder &builder, const SourceManager &sources, SourceRange range);

/// Walks one HIR function and builds its body at the builder's insertion point.
///
/// A variable is the list of values it takes: `variables` holds the current one. A region that assigns a variable of
/// the outside yields it (scf.if) or carries it (scf.for, scf.while).
class Body {
public:
  Body(const hir::Function &function, const SourceManager &sources, mlir::OpBuilder builder);
  virtual ~Body() = default;

protected:
  const hir::Function &function;
  const SourceManager &sources;
  mlir::OpBuilder builder;
  llvm::DenseMap<const hir::Node *, mlir::Value> values;
  /// By the variable's id; null before its first assignment.
  llvm::SmallVector<mlir::Value> variables;

  /// The IR type of a value of this type.
  mlir::Type convert(const Type *type);
  /// The IR type of one scalar.
  virtual mlir::Type element(DType dtype) = 0;
  /// The IR types that only one side has (tensors, lists, views, ...).
  virtual mlir::Type convertOther(const Type *type) = 0;
  /// A constant that is neither scalar nor tile.
  virtual mlir::Value constantOther(const Value &value, const Type *type, mlir::Location loc) = 0;
  /// The value of a variable that no path has assigned; never used by a program that runs.
  virtual mlir::Value undefined(mlir::Type type, mlir::Location loc);
  /// Every kind of node that is not control flow, variable, constant, or element by element. Null for nodes without a
  /// result.
  virtual mlir::Value leaf(const hir::Node &node) = 0;

  void block(const hir::Block &block);
  mlir::Value at(const hir::Node *node) { return values.lookup(node); }
  llvm::SmallVector<mlir::Value> operands(const hir::Node &node, size_t first = 0, size_t count = SIZE_MAX);
  mlir::Location location(SourceRange range);
  mlir::Value constant(const Value &value, const Type *type, mlir::Location loc);

  /// BodyElementwise.cpp: a node whose result's element depends on the same element of its operands. Null when the kind
  /// is another one.
  mlir::Value elementwise(const hir::Node &node);
  mlir::Value cast(mlir::Value value, const Type *from, const Type *to, mlir::Location loc);

  /// Runs `body` in a region, with the variables as they are now, and restores them. The builder stays where `body`
  /// left it.
  void inRegion(llvm::function_ref<void()> body);
  /// Variables of the outside that `regions` of a node assign, ascending.
  llvm::SmallVector<unsigned> assignedOutside(llvm::ArrayRef<const hir::Block *> regions);

private:
  /// How often a variable is mentioned in the function: one that is mentioned in a single region only lives there.
  llvm::SmallVector<unsigned> mentions;

  void node(const hir::Node &node);
  void ifNode(const hir::Node &node);
  void forNode(const hir::Node &node);
  void whileNode(const hir::Node &node);
  mlir::Value logical(const hir::Node &node, bool isAnd);
  llvm::SmallVector<mlir::Value> branch(mlir::Value condition, llvm::ArrayRef<unsigned> assigned, mlir::Type extra,
                                        llvm::function_ref<mlir::Value()> thenBody,
                                        llvm::function_ref<mlir::Value()> elseBody, mlir::Location loc);
  /// The current value, or an undefined one.
  mlir::Value variable(unsigned id, mlir::Location loc);
};

} // namespace kpkg::compiler
