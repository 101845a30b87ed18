// Says what failed if the compiler crashes or hangs in a child process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/supervise/Failures.h"
#include "compiler/codegen/activity/Activity.h"
#include "compiler/codegen/temporary/TemporaryFolder.h"
#include "compiler/driver/Compile.h"
#include "compiler/driver/Guard.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <unistd.h>
#include <vector>

namespace kpkg::command {

using namespace kpkg::compiler;

namespace {

/// Seconds in which a reproducer is reduced, and in which an instance must fail again.
constexpr unsigned kReduceSeconds = 20, kAgainSeconds = 60;
/// Failures with a reproducer: further ones are mostly alike.
constexpr size_t kMostReproducers = 3;

/// What an instance was doing when it failed.
struct Suspect {
  int kind, number, signal;
  bool isCaught; ///< the rest of the build went on
  std::string what, target, step;
};

std::vector<Suspect> suspects() {
  std::vector<Suspect> found;
  for (const Activity &each : activities())
    if (each.state != Activity::Free)
      found.push_back(
          {each.kind, each.number, each.signal, each.state == Activity::Crashed, each.what, each.target, each.step});
  return found;
}

/// A failure of an instance that was compiled alone.
struct Again {
  Repetition failure;
  std::optional<Reproducer> reproducer;
};

/// The lines that LLVM prints about what it was doing, without addresses.
std::vector<std::string> traceOf(llvm::StringRef output) {
  std::vector<std::string> lines;
  llvm::SmallVector<llvm::StringRef> all;
  output.split(all, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : all)
    if (line.size() > 2 && isdigit(line[0]) && line.contains(".\t") && !line.contains("Program arguments"))
      lines.push_back(line.split(".\t").second.str());
  return lines;
}

/// Compiles an instance again in a child, which writes the input of each stage.
Again compileAgain(const CompileOptions &options, const Suspect &suspect, const Limits &limits,
                   const TemporaryFolder &folder) {
  const std::string input = folder.file("stage"), output = folder.file("output");
  llvm::sys::fs::remove(input);
  llvm::sys::fs::remove(output);
  auto body = [&] {
    ::setenv("LLVM_DISABLE_SYMBOLIZATION", "1", /*overwrite=*/1);
    ::setenv("KPKG_CACHE_DIR", "", /*overwrite=*/1); // what a cache has cannot fail
    llvm::EnablePrettyStackTrace();
    compileAlone(options, suspect.kind, suspect.number, [&](const Reproducer &stage) {
      Reproducer named;
      named.set("instance", suspect.what);
      named.fields.insert(named.fields.end(), stage.fields.begin(), stage.fields.end());
      named.input = stage.input;
      std::error_code error;
      llvm::raw_fd_ostream(input, error) << named.text();
    });
    return int(Success);
  };
  Again again;
  unsigned limit = limits.instance == 0 ? kAgainSeconds : std::min(limits.instance, kAgainSeconds);
  again.failure.ending = runChild(body, {limit, folder.file(""), output}, [] {});
  if (again.failure.ending.isGood())
    return again;
  for (const Suspect &each : suspects())
    again.failure.step = each.step;
  if (auto text = llvm::MemoryBuffer::getFile(output))
    again.failure.message = (*text)->getBuffer().str();
  if (auto text = llvm::MemoryBuffer::getFile(input)) {
    auto stage = parseReproducer((*text)->getBuffer());
    if (stage)
      again.reproducer = std::move(*stage);
    else
      llvm::consumeError(stage.takeError());
  }
  return again;
}

/// Keeps the reproducer of a failure, reduced if it fails by itself, and returns a note.
std::string keepReproducer(Again again, const Limits &limits) {
  if (!again.reproducer)
    return "it fails before there is IR: the sources and this command line show it again";
  Reproducer reproducer = std::move(*again.reproducer);
  std::string what = "input";
  if (!again.failure.ending.isLate) { // each attempt would take the whole time
    Repetition alone = repeat(reproducer, kAgainSeconds);
    if (!alone.ending.isGood()) {
      reproducer = reducedInTime(reproducer, alone, kReduceSeconds);
      what = "reduced input";
    }
  }
  reproducer.set("version", versionText());
  reproducer.set("failure", describe(again.failure, limits.instance));
  for (const std::string &line : traceOf(again.failure.message))
    reproducer.fields.emplace_back("trace", line);
  auto path = keep(reproducer);
  if (!path)
    return "its " + what + " could not be kept: " + llvm::toString(path.takeError());
  return fmt::format("its {} is kept for a report, and `kpkg reproduce {}` compiles it again", what, *path);
}

std::string place(const std::string &what, const std::string &target) {
  return target.empty() ? what : what + " for " + target;
}

void note(const std::string &text) { fmt::print(stderr, "kpkg: note: {}\n", text); }

/// Adds reproducers to the messages on crashes that the build itself has noticed.
void explainCaught(const CompileOptions &options, const Limits &limits, const std::vector<Suspect> &crashed,
                   const TemporaryFolder &folder) {
  for (size_t i = 0; i < std::min(crashed.size(), kMostReproducers); ++i) {
    Again again = compileAgain(options, crashed[i], limits, folder);
    std::string where = place(crashed[i].what, crashed[i].target);
    if (again.failure.ending.isGood())
      note(fmt::format("the compiler failed in {}, but not when it was compiled again", where));
    else
      note(fmt::format("the compiler failed in {}: {}; {}", where, describe(again.failure, limits.instance),
                       keepReproducer(std::move(again), limits)));
  }
}

/// Reports that the child is gone. The instance at fault is the one that fails again, alone.
void explainEnding(const CompileOptions &options, const Limits &limits, const Ending &ending,
                   const std::vector<Suspect> &busy, const TemporaryFolder &folder) {
  if (isatty(STDERR_FILENO))
    fmt::print(stderr, "\r\033[K"); // a line of progress
  for (const Suspect &each : busy) {
    if (each.number < 0)
      continue;
    Again again = compileAgain(options, each, limits, folder);
    if (again.failure.ending.isGood() || again.failure.ending.isLate != ending.isLate)
      continue;
    fmt::print(stderr, "kpkg: error: the compiler failed in {}: {}; {}\n", place(each.what, each.target),
               describe(again.failure, limits.instance), ending.isLate ? "--instance-limit sets the limit" : kWayOut);
    return note(keepReproducer(std::move(again), limits));
  }
  std::string doing;
  for (const Suspect &each : busy)
    doing += (doing.empty() ? "; it compiled " : ", ") + place(each.what, each.target);
  fmt::print(stderr, "kpkg: error: the compiler failed: {}{}{}\n", describe({ending, "", ""}, limits.instance), doing,
             doing.empty() ? "" : ", which alone did not fail again");
}

} // namespace

void addLimits(CLI::App &command, Limits &limits) {
  command
      .add_option("--instance-limit", limits.instance, "Seconds that the work on one instance may take; 0 is no limit")
      ->envname("KPKG_INSTANCE_LIMIT")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--tool-limit", limits.tool, "Seconds that one run of ptxas may take; 0 is no limit")
      ->envname("KPKG_TOOL_LIMIT")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

ExitCode supervised(const CompileOptions &options, const Limits &limits, const std::function<ExitCode()> &body) {
  ::setenv("KPKG_TOOL_LIMIT", std::to_string(limits.tool).c_str(), /*overwrite=*/1);
  auto made = TemporaryFolder::create();
  if (!made) { // builds for CPUs need none
    llvm::consumeError(made.takeError());
    return body();
  }
  std::optional<TemporaryFolder> folder = std::move(*made);
  llvm::SmallString<128> temporary; // the child's own is removed
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, temporary);
  keepReproducersIn(std::string(temporary));
  shareActivities();
  Ending ending =
      runChild([&] { return int(body()); }, {limits.instance, folder->file(""), ""}, [&] { folder.reset(); });
  std::vector<Suspect> all = suspects(), crashed, busy;
  for (Suspect &each : all)
    (each.isCaught ? crashed : busy).push_back(std::move(each));
  if (!ending.isGood())
    explainEnding(options, limits, ending, busy, *folder);
  else
    explainCaught(options, limits, crashed, *folder);
  return ending.isGood() ? ExitCode(ending.code) : WorldError;
}

} // namespace kpkg::command
