// Declares how editors follow a check: they give the texts of open files, and receive the types of expressions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Type.h"
#include "compiler/comptime/Value.h"
#include "compiler/source/Source.h"

namespace kpkg::compiler {

/// Follows the check of one program. Builds have none.
class Observer {
public:
  virtual ~Observer() = default;
  /// Returns the file to read in place of the one on disk; null if the one on disk counts. Each call for a path returns
  /// the same file, which belongs to the SourceManager of the check.
  virtual const SourceFile *openFile(const std::string &path) = 0;
  /// Receives the type of an expression or of a declared name, once for each instance and call. `value` is null unless
  /// it is known at compile time.
  virtual void typed(SourceRange range, const Type &type, const Value *value) = 0;
};

} // namespace kpkg::compiler
