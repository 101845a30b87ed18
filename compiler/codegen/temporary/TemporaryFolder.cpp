// Creates a folder for the files of a tool's run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/temporary/TemporaryFolder.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace kpkg::compiler {

Expected<TemporaryFolder> TemporaryFolder::create() {
  SmallString<128> path;
  if (std::error_code error = sys::fs::createUniqueDirectory("kpkg", path)) {
    SmallString<128> folder;
    sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
    return createStringError(error, "cannot make a temporary folder in %s: %s", folder.c_str(),
                             error.message().c_str());
  }
  return TemporaryFolder(path.str().str());
}

TemporaryFolder::~TemporaryFolder() {
  if (!path.empty())
    sys::fs::remove_directories(path);
}

std::string TemporaryFolder::file(const Twine &name) const {
  SmallString<128> full(path);
  sys::path::append(full, name);
  return full.str().str();
}

Expected<std::string> TemporaryFolder::write(const Twine &name, StringRef bytes) const {
  std::string full = file(name);
  std::error_code error;
  raw_fd_ostream stream(full, error);
  if (!error) {
    stream << bytes;
    stream.close();
    error = stream.error();
    stream.clear_error(); // otherwise the stream's destructor aborts the program
  }
  if (error)
    return createStringError(error, "cannot write %s: %s", full.c_str(), error.message().c_str());
  return full;
}

} // namespace kpkg::compiler
