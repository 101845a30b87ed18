// Declares the call, loop and exit records of the elaborator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Elaborator.h"

namespace kpkg::compiler {

/// A Bool variable that records whether an exit was taken. It is created only if something must read it.
struct Elaborator::ExitFlag {
  hir::Local *local = nullptr;
  hir::Node *start = nullptr;           ///< becomes `flag = False`
  std::vector<hir::Block *> sites = {}; ///< blocks whose last statement is the exit
};

/// A loop of the current function whose body is being checked.
struct Elaborator::Loop {
  ExitFlag skip;              ///< the rest of this iteration is skipped
  hir::Local *stop = nullptr; ///< no further iteration runs; null if nothing can stop the loop
  bool isTiles = false;
  bool isUnrolled = false;    ///< `comptime for`: not in Frame::loops
  size_t depth = 0;           ///< of an unrolled loop: the number of enclosing loops
  hir::Block *home = nullptr; ///< of an unrolled loop: the block for the current iteration's statements
  /// Of an unrolled loop: how the current iteration ended at compile time.
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
  /// The result, if the only return is the last statement; otherwise `results` has it.
  std::optional<Operand> direct;
  std::vector<hir::Local *> results = {};
  std::vector<ValueRanges::State> atReturns = {}; ///< of an op: what is known at each return
  bool isTuple = false;
  std::optional<Operand> structShape; ///< the first result, if results are structs: its comptime parameters
  std::set<std::string> reassigned;   ///< names that the function assigns after their declaration
  SourceRange callSite;
};

/// Collects names that statements assign (not declare).
void collectAssigned(const ast::Block &block, std::set<std::string> &names);
/// Returns whether a loop body has a `break` of this loop, or a `return`.
bool mayStop(const ast::Block &block);
/// Returns whether a block has a `return`.
bool hasReturn(const ast::Block &block);
/// Returns whether a block has a `return` with a value.
bool returnsValue(const ast::Block &block);

/// Returns whether a kernel loops over `output_tiles`, so that it is launched without a grid.
bool isPersistent(const ast::FunctionStmt &kernel);

} // namespace kpkg::compiler
