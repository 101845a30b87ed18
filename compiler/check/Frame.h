// The call, loop and exit records of the elaborator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Elaborator.h"

namespace kpkg::compiler {

/// A Bool variable that says whether an exit was taken. It comes into being only when something must ask for it.
struct Elaborator::ExitFlag {
  hir::Local *local = nullptr;
  hir::Node *start = nullptr;           ///< becomes `flag = False`
  std::vector<hir::Block *> sites = {}; ///< where the exit is taken, as the last thing in the block
};

/// A loop of the current function whose body is being checked.
struct Elaborator::Loop {
  ExitFlag skip;              ///< the rest of this iteration is not run
  hir::Local *stop = nullptr; ///< no further iteration is run; null when nothing can stop the loop
  bool isTiles = false;
  bool isUnrolled = false;    ///< `comptime for`: not among Frame::loops
  size_t depth = 0;           ///< of an unrolled one: how many other loops are around it
  hir::Block *home = nullptr; ///< of an unrolled one: where the current iteration's statements go
  /// Of an unrolled one: how the current iteration was left while compiling.
  enum class Exit : uint8_t { None, Break, Continue } exit = Exit::None;
};

/// A function whose body is being checked: the kernel or op itself, or an inlined call.
struct Elaborator::Frame {
  const FunctionEntity *function = nullptr;
  Frame *caller = nullptr;
  hir::Block *body = nullptr;
  ExitFlag returned;
  std::vector<Loop *> loops = {};
  std::vector<Loop *> unrolled = {};
  TypeSpec resultSpec;
  bool hasResult = false;
  bool sawReturn = false;
  /// The result when the only return is the last statement; else `results`.
  std::optional<Operand> direct;
  std::vector<hir::Local *> results = {};
  bool isTuple = false;
  std::set<std::string> reassigned; ///< names that the function assigns after their declaration
  SourceRange callSite;
};

/// Names that statements assign (not declare).
void collectAssigned(const ast::Block &block, std::set<std::string> &names);
/// Whether a loop body has a `break` of this loop, or a `return`.
bool mayStop(const ast::Block &block);
/// Whether a block has a `return`.
bool hasReturn(const ast::Block &block);
/// Whether a block has a `return` with a value.
bool returnsValue(const ast::Block &block);

/// Whether a kernel goes over `output_tiles`, so that it is launched without a grid.
bool isPersistent(const ast::FunctionStmt &kernel);

} // namespace kpkg::compiler
