// Runs programs of a CUDA toolkit as child processes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/Tool.h"
#include "compiler/codegen/activity/Activity.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// Reads what a process writes until it ends. Returns false if it takes more than `seconds`; 0 is no limit.
bool readUntilEnd(int descriptor, unsigned seconds, std::string &text) {
  const int64_t end = steadyMilliseconds() + int64_t(seconds) * 1000;
  for (;;) {
    int64_t left = seconds ? end - steadyMilliseconds() : -1;
    if (seconds && left <= 0)
      return false;
    pollfd poll = {descriptor, POLLIN, 0};
    if (::poll(&poll, 1, int(std::min<int64_t>(left, INT_MAX))) <= 0)
      continue; // late, or interrupted
    char buffer[4096];
    ssize_t size = ::read(descriptor, buffer, sizeof buffer);
    if (size == 0 || (size < 0 && errno != EINTR))
      return true;
    text.append(buffer, std::max<ssize_t>(size, 0));
  }
}

/// Returns the parent of a program's folder.
std::string prefixOf(StringRef program) { return sys::path::parent_path(sys::path::parent_path(program)).str(); }

} // namespace

unsigned toolLimit() {
  constexpr unsigned usual = 600;
  unsigned seconds = usual;
  std::optional<std::string> named = sys::Process::GetEnv("KPKG_TOOL_LIMIT");
  return named && !StringRef(*named).getAsInteger(10, seconds) ? seconds : usual;
}

ToolOutcome runTool(StringRef program, ArrayRef<StringRef> arguments, unsigned seconds) {
  ToolOutcome outcome;
  auto cannotRun = [&](int error) {
    outcome.code = -1;
    outcome.failure = std::strerror(error);
    return outcome;
  };
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return cannotRun(errno);
  SmallVector<std::string> words = {program.str()};
  for (StringRef argument : arguments)
    words.push_back(argument.str());
  SmallVector<char *> pointers;
  for (std::string &word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  // Its own process group is what a time limit ends: a script's children, too.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  int error = ::posix_spawn(&process, words[0].c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return cannotRun(error);
  }
  recordTool(process);
  bool isInTime = readUntilEnd(ends[0], seconds, outcome.output);
  ::close(ends[0]);
  if (!isInTime)
    ::kill(-process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR)
    ;
  recordTool(0);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -2;
  if (!isInTime) {
    outcome.code = -2;
    outcome.failure = "it did not end within " + std::to_string(seconds) + " seconds";
  } else if (WIFSIGNALED(status)) {
    outcome.failure = std::string("it was ended by a signal: ") + ::strsignal(WTERMSIG(status));
  }
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
