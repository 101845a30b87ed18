// Declares the files that show an error of the compiler or of a tool again.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kpkg::compiler {

/// The input of a stage of the compiler: MLIR or PTX, below lines of comments that say what is done with it.
struct Reproducer {
  /// Names and values in the order of the file. Values have one line. `stage` is "cpu", "gpu" or "ptxas".
  std::vector<std::pair<std::string, std::string>> fields;
  std::string input;

  /// Returns the first value of a field; empty without one.
  llvm::StringRef get(llvm::StringRef name) const;
  /// Replaces the field, or adds it at the end.
  void set(llvm::StringRef name, std::string value);
  /// Returns the text of the file. MLIR and ptxas read it as it is.
  std::string text() const;
};

/// Receives the input of each stage of an instance, before the stage runs.
using BeforeStage = std::function<void(const Reproducer &)>;

/// Parses the text of a file. The error says what is missing.
llvm::Expected<Reproducer> parseReproducer(llvm::StringRef text);

/// Writes a new file into the folder for temporary files, and returns its path.
llvm::Expected<std::string> keep(const Reproducer &reproducer);

/// Makes keep() write into this folder.
void keepReproducersIn(std::string folder);

} // namespace kpkg::compiler
