// Runs reproducers in child processes, and reduces them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/activity/Activity.h"
#include "compiler/codegen/temporary/TemporaryFolder.h"
#include "compiler/driver/Guard.h"
#include "compiler/driver/Reproduce.h"
#include "runtime/format/OutputFile.h"
#include "tools/kpkg/supervise/Failures.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/PrettyStackTrace.h"
#include <fmt/format.h>

namespace kpkg::command {

using namespace kpkg::compiler;

static std::string contentOf(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

bool Repetition::isLike(const Repetition &other) const {
  return ending.signal == other.ending.signal && ending.isLate == other.ending.isLate && step == other.step;
}

Repetition repeat(const Reproducer &reproducer, unsigned limit) {
  Repetition result;
  auto folder = TemporaryFolder::create();
  if (!folder) {
    result.message = llvm::toString(folder.takeError());
    result.ending.code = WorldError;
    return result;
  }
  std::optional<TemporaryFolder> kept = std::move(*folder);
  ChildOptions options = {limit, kept->file(""), kept->file("output")};
  auto body = [&] {
    ::setenv("LLVM_DISABLE_SYMBOLIZATION", "1", /*overwrite=*/1); // which would take seconds
    llvm::EnablePrettyStackTrace();
    ActivityScope activity(0, 0, reproducer.get("instance"));
    llvm::Error error = runAgain(reproducer);
    if (!error)
      return int(Success);
    fmt::print(stderr, "{}\n", llvm::toString(std::move(error)));
    return int(InputRefused);
  };
  result.ending = runChild(body, options, [&] { kept.reset(); });
  for (const Activity &each : activities())
    if (each.state == Activity::Busy)
      result.step = each.step;
  result.message = contentOf(options.errorFile);
  return result;
}

Reproducer reducedInTime(const Reproducer &reproducer, const Repetition &wanted, unsigned seconds) {
  auto folder = TemporaryFolder::create();
  if (!folder) {
    llvm::consumeError(folder.takeError());
    return reproducer;
  }
  std::optional<TemporaryFolder> kept = std::move(*folder);
  const std::string result = kept->file("reduced");
  const int64_t end = steadyMilliseconds() + int64_t(seconds) * 1000;
  // The reducer itself may crash on odd IR. What it has found by then counts.
  auto body = [&] {
    auto fails = [&](const Reproducer &candidate) {
      Repetition again = repeat(candidate, seconds);
      if (!again.isLike(wanted))
        return false;
      (void)format::writeFile(result, candidate.text());
      return true;
    };
    reduced(reproducer, fails, [&] { return steadyMilliseconds() > end; });
    return int(Success);
  };
  runChild(body, {0, kept->file(""), kept->file("output")}, [&] { kept.reset(); });
  auto smallest = parseReproducer(contentOf(result));
  if (smallest)
    return std::move(*smallest);
  llvm::consumeError(smallest.takeError());
  return reproducer;
}

std::string describe(const Repetition &failure, unsigned limit) {
  std::string text = failure.ending.isLate ? fmt::format("it did not end within {} seconds", limit)
                                           : wordsForSignal(failure.ending.signal);
  return failure.step.empty() ? text : fmt::format("{}, in the pass {}", text, failure.step);
}

} // namespace kpkg::command
