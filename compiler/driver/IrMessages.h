// Collects MLIR's reports as text with source positions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include <string>

namespace kpkg::compiler {

/// During its lifetime, errors of `context` and their notes are collected instead of printed.
class IrMessages {
public:
  explicit IrMessages(mlir::MLIRContext &context);
  /// Returns the errors so far, one per line, and advice if the compiler is at fault. Never empty, so that a failure
  /// without a message still has a text.
  std::string text() const;
  bool isEmpty() const { return collected.empty(); }

private:
  std::string collected;
  bool isOfCompiler = false;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace kpkg::compiler
