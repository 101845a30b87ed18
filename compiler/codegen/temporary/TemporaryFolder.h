// A folder for the files of a tool's run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kpkg::compiler {

/// Lies where TMPDIR says, and is removed with everything in it. Errors name the path and the cause.
class TemporaryFolder {
public:
  static llvm::Expected<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder &&other) : path(std::exchange(other.path, {})) {}
  ~TemporaryFolder();

  /// The path of the file `name` in it, which need not exist.
  std::string file(const llvm::Twine &name) const;
  /// Makes the file `name` in it and gives its path.
  llvm::Expected<std::string> write(const llvm::Twine &name, llvm::StringRef bytes) const;

private:
  explicit TemporaryFolder(std::string path) : path(std::move(path)) {}
  std::string path;
};

} // namespace kpkg::compiler
