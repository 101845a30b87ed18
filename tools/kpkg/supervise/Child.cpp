// Runs a part of the command in a child process, which may crash or hang.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/supervise/Child.h"
#include "compiler/codegen/activity/Activity.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kpkg::command {

using namespace kpkg::compiler;

namespace {

constexpr int interrupts[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t interruptedBy = 0;
volatile sig_atomic_t childProcess = 0;

/// While it lives, interrupts go to the child.
class Forwarding {
public:
  Forwarding() {
    interruptedBy = 0;
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
      interruptedBy = signal;
      if (childProcess > 0)
        ::kill(childProcess, signal);
    };
    for (size_t i = 0; i < std::size(interrupts); ++i) {
      ::sigaction(interrupts[i], nullptr, &before[i]);
      if (before[i].sa_handler != SIG_IGN) // `nohup`, for instance
        ::sigaction(interrupts[i], &action, nullptr);
    }
  }
  ~Forwarding() {
    childProcess = 0;
    for (size_t i = 0; i < std::size(interrupts); ++i)
      ::sigaction(interrupts[i], &before[i], nullptr);
  }
  Forwarding(const Forwarding &) = delete;
  Forwarding &operator=(const Forwarding &) = delete;

private:
  struct sigaction before[std::size(interrupts)];
};

[[noreturn]] void runBody(const std::function<int()> &body, const ChildOptions &options, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) // it ended before the line above
    ::_exit(1);
  for (int signal : interrupts)
    ::signal(signal, SIG_DFL);
  if (!options.temporaryFolder.empty())
    ::setenv("TMPDIR", options.temporaryFolder.c_str(), /*overwrite=*/1);
  if (!options.errorFile.empty())
    for (FILE *stream : {stdout, stderr})
      if (!std::freopen(options.errorFile.c_str(), "a", stream))
        ::_exit(1);
  int code = body();
  std::fflush(nullptr);
  ::_exit(code);
}

bool isAnyLate(unsigned limit) {
  if (limit == 0)
    return false;
  int64_t now = steadyMilliseconds();
  for (const Activity &each : activities())
    if (each.state == Activity::Busy && each.number >= 0 && now - each.began > int64_t(limit) * 1000)
      return true;
  return false;
}

void endTools() {
  for (Activity &each : activities())
    if (int process = each.tool.exchange(0); process > 0)
      ::kill(-process, SIGKILL);
}

/// Waits for the end of the child, which closes `descriptor`. Returns false after killing it for being late.
bool waitFor(pid_t child, int descriptor, unsigned limit) {
  constexpr int interval = 200; // milliseconds between looks at the clock
  for (;;) {
    pollfd poll = {descriptor, POLLIN, 0};
    if (::poll(&poll, 1, interval) > 0)
      return true;
    if (isAnyLate(limit)) {
      ::kill(child, SIGKILL);
      return false;
    }
  }
}

} // namespace

Ending runChild(const std::function<int()> &body, const ChildOptions &options, const std::function<void()> &cleanUp) {
  Ending ending;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    ending.code = body(); // without a second process
    return ending;
  }
  std::fflush(nullptr);
  clearActivities();
  pid_t parent = ::getpid();
  {
    Forwarding forwarding;
    pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      runBody(body, options, parent);
    }
    ::close(ends[1]);
    if (child < 0) {
      ::close(ends[0]);
      ending.code = body();
      return ending;
    }
    childProcess = child;
    ending.isLate = !waitFor(child, ends[0], options.limit);
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
      ;
    if (WIFEXITED(status))
      ending.code = WEXITSTATUS(status);
    else if (!ending.isLate)
      ending.signal = WTERMSIG(status);
    endTools();
  }
  if (ending.signal != 0 && ending.signal == interruptedBy) {
    cleanUp();
    ::raise(ending.signal);
  }
  return ending;
}

} // namespace kpkg::command
