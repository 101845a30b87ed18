// Collects MLIR's reports as text with source positions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/IrMessages.h"
#include "compiler/driver/Guard.h"
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

/// Returns whether an error mentions IR ops, which kernel authors do not know. Messages for authors name tiles and
/// kernels.
static bool speaksOfOps(llvm::StringRef text) { return text.starts_with("'") || text.contains("does not dominate"); }

IrMessages::IrMessages(mlir::MLIRContext &context)
    : handler(&context, [this](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
          return mlir::success();
        std::string text = "\n" + position(diagnostic.getLocation()) + diagnostic.str();
        for (mlir::Diagnostic &note : diagnostic.getNotes())
          if (!llvm::StringRef(note.str()).starts_with("see current operation")) // IR does not help authors
            text += "\n  " + position(note.getLocation()) + note.str();
        if (collected.find(text) == std::string::npos) // variants often fail for the same reason
          collected += text;
        isOfCompiler = isOfCompiler || speaksOfOps(diagnostic.str());
        return mlir::success();
      }) {}

std::string IrMessages::text() const {
  if (collected.empty())
    return std::string("the compiler failed without a message; ") + kWayOut;
  return collected + (isOfCompiler ? std::string("\n") + kWayOut : "");
}

} // namespace kpkg::compiler
