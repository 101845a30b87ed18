// Finds the source files and targets that the command line names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Inputs.h"
#include "compiler/source/Source.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/TargetParser/Host.h"
#include <algorithm>

using namespace llvm;

namespace kpkg::compiler {

namespace {

Error addFolder(const std::string &folder, std::vector<std::string> &paths) {
  std::error_code error;
  std::vector<std::string> found;
  for (sys::fs::recursive_directory_iterator entry(folder, error), end; entry != end && !error; entry.increment(error))
    if (sys::path::extension(entry->path()) == ".k")
      found.push_back(entry->path());
  if (error)
    return createStringError(error, "cannot read the folder %s", folder.c_str());
  if (found.empty())
    return createStringError("the folder %s has no .k files", folder.c_str());
  std::sort(found.begin(), found.end());
  paths.insert(paths.end(), found.begin(), found.end());
  return Error::success();
}

} // namespace

Expected<std::vector<std::string>> findSources(ArrayRef<std::string> inputs) {
  std::vector<std::string> paths;
  for (const std::string &input : inputs) {
    if (sys::fs::is_directory(input)) {
      if (Error error = addFolder(input, paths))
        return std::move(error);
    } else if (sys::fs::exists(input)) {
      paths.push_back(input);
    } else {
      return createStringError("%s: no such file or folder", input.c_str());
    }
  }
  return paths;
}

std::vector<std::string> findTuning(ArrayRef<std::string> inputs) {
  std::vector<std::string> paths;
  for (const std::string &input : inputs) {
    std::vector<std::string> found;
    std::error_code error;
    if (sys::fs::is_directory(input))
      for (sys::fs::recursive_directory_iterator entry(input, error), end; entry != end && !error;
           entry.increment(error))
        if (sys::path::filename(entry->path()) == "tuning.json")
          found.push_back(entry->path());
    std::sort(found.begin(), found.end());
    append_range(paths, found);
  }
  return paths;
}

std::vector<PackedSource> packedSources(const SourceManager &sources) {
  std::vector<PackedSource> packed;
  StringMap<unsigned> uses;
  for (uint32_t i = 0; i < sources.fileCount(); ++i) {
    const SourceFile &file = sources.file(i);
    std::string name = sys::path::filename(file.path()).str();
    if (unsigned earlier = uses[name]++)
      name += "." + std::to_string(earlier);
    packed.push_back({name, std::string(file.text())});
  }
  return packed;
}

} // namespace kpkg::compiler
