// Creates a folder for the files of a tool's run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kpkg::compiler {

/// A folder in TMPDIR that is removed with its contents. Errors name the path and the cause.
class TemporaryFolder {
public:
  static llvm::Expected<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder &&other) : path(std::exchange(other.path, {})) {}
  ~TemporaryFolder();

  /// Returns the path of the file `name` in the folder. It need not exist.
  std::string file(const llvm::Twine &name) const;
  /// Creates the file `name` in the folder and returns its path.
  llvm::Expected<std::string> write(const llvm::Twine &name, llvm::StringRef bytes) const;

private:
  explicit TemporaryFolder(std::string path) : path(std::move(path)) {}
  std::string path;
};

} // namespace kpkg::compiler
