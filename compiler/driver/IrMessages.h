// Collects what MLIR reports, as text with the user's source positions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include <string>

namespace kpkg::compiler {

/// While it lives, errors and their notes of `context` are kept instead of printed.
class IrMessages {
public:
  explicit IrMessages(mlir::MLIRContext &context);
  /// The errors so far, one a line, and a way out where the compiler is to blame; never empty, so that a failure
  /// without a message still says something.
  std::string text() const;
  bool isEmpty() const { return collected.empty(); }

private:
  std::string collected;
  bool isOfCompiler = false;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace kpkg::compiler
