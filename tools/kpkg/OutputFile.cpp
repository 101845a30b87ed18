// Files that the commands write.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/OutputFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace kpkg::command {

llvm::Error writeAtomically(const std::string &path, const std::string &bytes) {
  llvm::Error error = llvm::writeToOutput(path, [&](llvm::raw_ostream &stream) -> llvm::Error {
    stream << bytes;
    return llvm::Error::success();
  });
  if (!error)
    return llvm::Error::success();
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "cannot write %s: %s", path.c_str(),
                                 llvm::toString(std::move(error)).c_str());
}

} // namespace kpkg::command
