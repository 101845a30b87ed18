// Declares the state that the modules and the checker of one program share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Program.h"
#include "compiler/check/Type.h"
#include "compiler/comptime/Evaluate.h"

#include <string>

namespace kpkg::compiler {

class ModuleScope;
class Observer;

/// Options, types and the comptime evaluator of a program.
struct CheckContext {
  CheckContext(const ProgramOptions &options, DiagnosticEngine &diags);

  /// Returns the text of `-D name=text`; null without one.
  const std::string *defined(const std::string &name) const;

  const ProgramOptions options;
  DiagnosticEngine &diags;
  TypeTable types;
  Evaluator evaluator;
  const ModuleScope *prelude = nullptr;
  Observer *observer = nullptr;
};

} // namespace kpkg::compiler
