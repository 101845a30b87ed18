// Shared IR generation of kernels and ops: variables become SSA values, control flow becomes scf, scalars and tiles
// become arith.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Hir.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kpkg::compiler {

class SourceManager;

/// Converts a source range to an IR location.
mlir::Location locationOf(mlir::OpBuilder &builder, const SourceManager &sources, SourceRange range);

/// Walks one HIR function and builds its body at the builder's insertion point.
///
/// A variable is the sequence of its values: `variables` holds the current one. A region that assigns to an outer
/// variable yields it (scf.if) or carries it (scf.for, scf.while).
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

  /// Returns the IR type of a value of this type.
  mlir::Type convert(const Type *type);
  /// Returns the IR type of one scalar.
  virtual mlir::Type element(DType dtype) = 0;
  /// Returns the IR types that only kernels or only ops have (tensors, lists, views, ...).
  virtual mlir::Type convertOther(const Type *type) = 0;
  /// Creates a constant that is neither scalar nor tile.
  virtual mlir::Value constantOther(const Value &value, const Type *type, mlir::Location loc) = 0;
  /// Returns the value of a variable that no path has assigned. Running programs never use it.
  virtual mlir::Value undefined(mlir::Type type, mlir::Location loc);
  /// Generates all nodes except control flow, variables, constants and elementwise nodes. Null for nodes without a
  /// result.
  virtual mlir::Value leaf(const hir::Node &node) = 0;

  void block(const hir::Block &block);
  mlir::Value at(const hir::Node *node) { return values.lookup(node); }
  llvm::SmallVector<mlir::Value> operands(const hir::Node &node, size_t first = 0, size_t count = SIZE_MAX);
  mlir::Location location(SourceRange range);
  mlir::Value constant(const Value &value, const Type *type, mlir::Location loc);

  /// BodyElementwise.cpp: generates elementwise nodes. Null for other kinds.
  mlir::Value elementwise(const hir::Node &node);
  mlir::Value reciprocal(mlir::Value value, const Type *type, mlir::Location loc);
  mlir::Value cast(mlir::Value value, const Type *from, const Type *to, mlir::Location loc);

  /// Runs `body` in a region with the current variables, and restores them afterwards. The builder stays where `body`
  /// left it.
  void inRegion(llvm::function_ref<void()> body);
  /// Returns the outer variables that `regions` of a node assign, ascending.
  llvm::SmallVector<unsigned> assignedOutside(llvm::ArrayRef<const hir::Block *> regions);

private:
  /// How often the function mentions each variable. A variable whose mentions are all in one region is local to it.
  llvm::SmallVector<unsigned> mentions;

  /// Adds the name of a variable that receives a tile to its location, with the tile's type: passes may give the
  /// location to other tiles.
  void addPlace(mlir::Value value, mlir::Location name);
  void node(const hir::Node &node);
  void ifNode(const hir::Node &node);
  void forNode(const hir::Node &node);
  void whileNode(const hir::Node &node);
  mlir::Value logical(const hir::Node &node, bool isAnd);
  llvm::SmallVector<mlir::Value> branch(mlir::Value condition, llvm::ArrayRef<unsigned> assigned, mlir::Type extra,
                                        llvm::function_ref<mlir::Value()> thenBody,
                                        llvm::function_ref<mlir::Value()> elseBody, mlir::Location loc);
  /// Returns the current value, or an undefined one.
  mlir::Value variable(unsigned id, mlir::Location loc);
};

} // namespace kpkg::compiler
