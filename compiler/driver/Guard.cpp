// Runs parts of the compiler so that crashes become messages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Guard.h"
#include "compiler/codegen/activity/Activity.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include <csignal>
#include <cstdlib>
#include <limits>
#include <unistd.h>

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// The name of the pass that runs on this thread; empty between passes.
std::string &currentPass() {
  thread_local std::string name;
  return name;
}

class PassTrace : public mlir::PassInstrumentation {
  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override {
    if (!pass->getArgument().empty()) // pipelines have none
      beginStep(pass->getArgument(), op);
  }
  void runAfterPass(mlir::Pass *, mlir::Operation *) override { endStep(); }
  void runAfterPassFailed(mlir::Pass *, mlir::Operation *) override { endStep(); }

  static void endStep() {
    currentPass().clear();
    recordStep("");
  }
};

struct SignalWords {
  StringRef name, meaning;
};

SignalWords describeSignal(int signal) {
  switch (signal) {
  case SIGABRT:
    return {"SIGABRT", "an assumption did not hold"};
  case SIGSEGV:
    return {"SIGSEGV", "it read where nothing is"};
  case SIGBUS:
    return {"SIGBUS", "it read where nothing is"};
  case SIGFPE:
    return {"SIGFPE", "it divided by zero"};
  case SIGILL:
    return {"SIGILL", "it reached code that should not be reached"};
  case SIGTRAP:
    return {"SIGTRAP", "it reached code that should not be reached"};
  case SIGKILL:
    return {"SIGKILL", "the system ended it, perhaps for want of memory"};
  default:
    return {"", "it was stopped by a signal"};
  }
}

/// Calls itself until the stack is full.
int overflow(int depth) {
  volatile char room[4096];
  room[0] = char(depth);
  return depth == std::numeric_limits<int>::max() ? 0 : overflow(depth + 1) + room[0];
}

void fail(StringRef how) {
  if (how == "abort")
    std::abort();
  if (how == "segfault")
    std::raise(SIGSEGV);
  if (how == "overflow")
    overflow(0);
  if (how == "kill")
    ::kill(::getpid(), SIGKILL);
  while (how == "hang")
    ::sleep(1);
}

} // namespace

std::string wordsForSignal(int signal) {
  auto [name, meaning] = describeSignal(signal);
  return (name.empty() ? "signal " + std::to_string(signal) : name.str()) + ", " + meaning.str();
}

void beginStep(StringRef step, mlir::Operation *op) {
  currentPass() = step.str();
  recordStep(step);
  static const std::string asked = sys::Process::GetEnv("KPKG_TEST_FAILURE").value_or("");
  if (asked.empty())
    return;
  auto [how, place] = StringRef(asked).split(':');
  auto [where, operation] = place.split(':');
  bool isThere = operation.empty();
  op->walk([&](mlir::Operation *inner) { isThere |= inner->getName().getStringRef() == operation; });
  if (where == step && isThere)
    fail(how);
}

std::optional<std::string> failureOf(function_ref<void()> body) {
  CrashRecoveryContext::Enable();
  CrashRecoveryContext context;
  currentPass().clear();
  if (context.RunSafely(body))
    return std::nullopt;
  constexpr int firstOfSignals = 128;
  std::string pass = currentPass().empty() ? "" : " in the pass " + currentPass();
  int signal = context.RetCode - firstOfSignals;
  recordCrash(signal);
  return formatv("the compiler failed{0}: {1}; {2}", pass, wordsForSignal(signal), kWayOut).str();
}

void tracePasses(mlir::PassManager &passes) { passes.addInstrumentation(std::make_unique<PassTrace>()); }

} // namespace kpkg::compiler
