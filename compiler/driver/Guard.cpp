// Runs parts of the compiler so that crashes become messages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Guard.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FormatVariadic.h"
#include <csignal>

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// The name of the pass that runs on this thread; empty between passes.
std::string &currentPass() {
  thread_local std::string name;
  return name;
}

class PassTrace : public mlir::PassInstrumentation {
  void runBeforePass(mlir::Pass *pass, mlir::Operation *) override {
    if (!pass->getArgument().empty()) // pipelines have none
      currentPass() = pass->getArgument().str();
  }
  void runAfterPass(mlir::Pass *, mlir::Operation *) override { currentPass().clear(); }
  void runAfterPassFailed(mlir::Pass *, mlir::Operation *) override { currentPass().clear(); }
};

StringRef nameOfSignal(int code) {
  switch (code) {
  case SIGABRT:
    return "an assumption did not hold";
  case SIGSEGV:
  case SIGBUS:
    return "it read where nothing is";
  case SIGFPE:
    return "it divided by zero";
  default:
    return "it was stopped by a signal";
  }
}

} // namespace

std::optional<std::string> failureOf(function_ref<void()> body) {
  CrashRecoveryContext::Enable();
  CrashRecoveryContext context;
  currentPass().clear();
  if (context.RunSafely(body))
    return std::nullopt;
  constexpr int firstOfSignals = 128;
  std::string pass = currentPass().empty() ? "" : " in the pass " + currentPass();
  return formatv("the compiler failed{0}: {1}; {2}", pass, nameOfSignal(context.RetCode - firstOfSignals), kWayOut)
      .str();
}

void tracePasses(mlir::PassManager &passes) { passes.addInstrumentation(std::make_unique<PassTrace>()); }

} // namespace kpkg::compiler
