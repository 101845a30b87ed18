// Collects what MLIR reports, as text with the user's source positions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/IrMessages.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

namespace kpkg::compiler {

static std::string position(mlir::Location location) {
  if (auto file = location->findInstanceOf<mlir::FileLineColLoc>())
    return file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn()) +
           ": ";
  return "";
}

IrMessages::IrMessages(mlir::MLIRContext &context)
    : handler(&context, [this](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
          return mlir::success();
        collected += "\n" + position(diagnostic.getLocation()) + diagnostic.str();
        for (mlir::Diagnostic &note : diagnostic.getNotes())
          collected += "\n  " + position(note.getLocation()) + note.str();
        return mlir::success();
      }) {}

std::string IrMessages::text() const { return collected.empty() ? "the compiler failed without a message" : collected; }

} // namespace kpkg::compiler
