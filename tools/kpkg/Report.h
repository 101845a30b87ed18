// How the commands report failures of the runtime and describe tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/format/KeyFiles.h"
#include "tools/kpkg/Commands.h"
#include <kpkg/kpkg.hpp>
#include <string>

namespace kpkg::command {

/// Prints "kpkg: error: ..." to stderr and gives the exit code that fits the error.
ExitCode report(const Error &error);

/// Opens a package; of what is a source instead, the error says to build it.
Result<Library> openPackage(const std::string &path);

/// Public keys, each by its digits or its file.
Result<std::vector<format::PublicKey>> readPublicKeys(const std::vector<std::string> &texts);

/// Each line without what would steer a terminal: names in it may come from a package.
std::string printableLines(const std::string &text);

/// "float32 [1024, 1024]", with strides where they are not the dense ones.
std::string describe(const Tensor &tensor);

/// The largest difference of two tensors of one shape, and the largest magnitude of the second.
struct Difference {
  double largest = 0;
  double scale = 0;
  /// NaN or infinity on one side only.
  bool classMismatch = false;
  /// At most `limit` times `scale`.
  bool within(double limit) const;
};
Difference compare(const Tensor &actual, const Tensor &expected);

} // namespace kpkg::command
