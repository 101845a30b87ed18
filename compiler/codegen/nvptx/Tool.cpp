// Runs programs of a CUDA toolkit as child processes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/Tool.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace llvm;

namespace kpkg::compiler {

char ToolFailed::ID = 0;

namespace {

std::string joined(StringRef folder, std::initializer_list<StringRef> parts) {
  SmallString<128> path(folder);
  for (StringRef part : parts)
    sys::path::append(path, part);
  return std::string(path);
}

/// Returns the path of a tool in the packages of the Python environment `prefix`, as PyPI's nvidia-cuda-nvcc and Triton
/// install it; or an empty string.
std::string inPythonEnvironment(StringRef prefix, StringRef name) {
  std::error_code error;
  for (sys::fs::directory_iterator python(joined(prefix, {"lib"}), error), end; !error && python != end;
       python.increment(error)) {
    if (!sys::path::filename(python->path()).starts_with("python"))
      continue;
    for (StringRef packages : {"site-packages", "dist-packages"}) {
      std::error_code inner;
      for (sys::fs::directory_iterator package(joined(python->path(), {packages, "nvidia"}), inner);
           !inner && package != end; package.increment(inner))
        if (std::string path = joined(package->path(), {"bin", name}); sys::fs::can_execute(path))
          return path;
      if (std::string path = joined(python->path(), {packages, "triton", "backends", "nvidia", "bin", name});
          sys::fs::can_execute(path))
        return path;
    }
  }
  return "";
}

/// Returns the parent of a program's folder.
std::string prefixOf(StringRef program) { return sys::path::parent_path(sys::path::parent_path(program)).str(); }

} // namespace

ToolOutcome runTool(StringRef program, ArrayRef<StringRef> arguments, unsigned seconds) {
  ToolOutcome outcome;
  SmallString<128> log;
  if (std::error_code error = sys::fs::createTemporaryFile("kpkg-tool", "log", log)) {
    outcome.code = -1;
    outcome.failure = "cannot make a temporary file: " + error.message();
    return outcome;
  }
  scope_exit removeLog([&] { sys::fs::remove(log); });
  SmallVector<StringRef> words = {program};
  append_range(words, arguments);
  std::optional<StringRef> streams[] = {StringRef(""), StringRef(log), StringRef(log)};
  outcome.code = sys::ExecuteAndWait(program, words, std::nullopt, streams, seconds, 0, &outcome.failure);
  if (outcome.code == -2 && StringRef(outcome.failure).contains_insensitive("timed out"))
    outcome.failure = "it did not end within " + std::to_string(seconds) + " seconds";
  if (auto text = MemoryBuffer::getFile(log))
    outcome.output = (*text)->getBuffer().str();
  return outcome;
}

std::string findTool(StringRef name) {
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (auto home = sys::Process::GetEnv(variable))
      if (std::string path = joined(*home, {"bin", name}); sys::fs::can_execute(path))
        return path;
  if (auto path = sys::findProgramByName(name))
    return *path;
  if (std::string path = joined("/usr/local/cuda/bin", {name}); sys::fs::can_execute(path))
    return path;
  SmallVector<std::string> prefixes;
  if (auto environment = sys::Process::GetEnv("VIRTUAL_ENV"))
    prefixes.push_back(*environment);
  if (auto python = sys::findProgramByName("python3"))
    prefixes.push_back(prefixOf(*python));
  // The command itself may be in an environment's bin folder.
  prefixes.push_back(prefixOf(sys::fs::getMainExecutable(nullptr, nullptr)));
  for (StringRef prefix : prefixes)
    if (std::string path = inPythonEnvironment(prefix, name); !path.empty())
      return path;
  return "";
}

} // namespace kpkg::compiler
