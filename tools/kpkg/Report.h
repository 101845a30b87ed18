// Reports failures of the runtime, and describes tensors, for all commands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/format/KeyFiles.h"
#include "tools/kpkg/Commands.h"
#include <kpkg/kpkg.hpp>
#include <string>

namespace kpkg::command {

/// Prints "kpkg: error: ..." to stderr and returns the exit code for the error.
ExitCode report(const Error &error);

/// Opens a package. For a source file, the error says to build it.
Result<Library> openPackage(const std::string &path);

/// Reads public keys, each from its digits or its file.
Result<std::vector<format::PublicKey>> readPublicKeys(const std::vector<std::string> &texts);

/// Returns each line without terminal control sequences: names in it may come from a package.
std::string printableLines(const std::string &text);

/// Returns "float32 [1024, 1024]", with strides unless they are dense.
std::string describe(const Tensor &tensor);

/// The largest difference of two tensors of one shape, and the largest magnitude of the second.
struct Difference {
  double largest = 0;
  double scale = 0;
  /// NaN or infinity on one side only.
  bool classMismatch = false;
  /// Returns whether the difference is at most `limit` times `scale`.
  bool within(double limit) const;
};
Difference compare(const Tensor &actual, const Tensor &expected);

} // namespace kpkg::command
