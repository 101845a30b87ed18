// Declares HIR: the typed, comptime-resolved form of one kernel instance or one op, from which irgen generates IR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/ThreadBlock.h"
#include "compiler/check/Type.h"
#include "compiler/comptime/Value.h"
#include "compiler/source/Source.h"

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::compiler::hir {

enum class Kind : uint8_t {
#define HIR(Name) Name,
#include "compiler/check/HirKinds.def"
};
std::string_view name(Kind kind);

/// A mutable variable. Locals hold scalars, tiles, tensors, lists, dtypes and strings; never windows or kernel views.
struct Local {
  std::string name;
  const Type *type = nullptr;
  unsigned id = 0;
};

struct Node;

/// Nodes in execution order, each before its uses. `yields` are the values that leave the block, for kinds with yields.
struct Block {
  std::vector<Node *> nodes;
  std::vector<Node *> yields;
};

/// Properties of a launch besides its operands.
struct LaunchInfo {
  std::string kernel;
  std::vector<std::string> parameterNames;
  std::vector<bool> parameterAtLeast;
  std::vector<bool> argumentMut;
  unsigned gridRank = 0; ///< 0 for a persistent kernel
};

/// One operation. Every implicit conversion is a node, and control flow is structured, without early exits.
struct Node {
  Kind kind = Kind::Nothing;
  const Type *type = nullptr;
  SourceRange range;
  std::vector<SourceRange> names; ///< of the variables that receive the value; empty unless an editor follows the check
  std::vector<Node *> operands;
  std::vector<int64_t> ints;
  std::string text;
  Value value;
  Local *local = nullptr;
  std::vector<Local *> locals;
  std::vector<std::unique_ptr<Block>> regions;
  std::unique_ptr<LaunchInfo> launch;
};

struct FunctionParameter {
  std::string name;
  const Type *type = nullptr;
  bool isMut = false;
  SourceRange range;
  bool mayBeNone = false; ///< in a kernel: its type is `Optional`
};

/// One kernel instance or one op. Owns its nodes and locals.
struct Function {
  std::string name;
  SourceRange range;
  std::vector<FunctionParameter> parameters;
  std::vector<const Type *> results;
  Block body;
  bool isPersistent = false; ///< a kernel with ForTiles
  ThreadBlock threads;       ///< of a kernel at thread level
  std::deque<Node> nodes;
  std::deque<Local> locals;
};

/// Returns a readable dump, for tests and `kpkg build --emit=hir`.
std::string print(const Function &function);

} // namespace kpkg::compiler::hir
