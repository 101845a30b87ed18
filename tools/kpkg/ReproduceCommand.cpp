// `kpkg reproduce`: shows an error of the compiler or of a tool again.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/activity/Activity.h"
#include "runtime/format/OutputFile.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/supervise/Failures.h"
#include "llvm/Support/MemoryBuffer.h"
#include <fmt/format.h>

namespace kpkg::command {

namespace {

struct ReproduceOptions {
  std::string file, reduced;
  unsigned limit = 60, seconds = 60;
};

ExitCode fail(const ReproduceOptions &options, const std::string &why, ExitCode code) {
  fmt::print(stderr, "kpkg: error: {}: {}\n", options.file, why);
  return code;
}

ExitCode reproduce(const ReproduceOptions &options) {
  auto text = llvm::MemoryBuffer::getFile(options.file);
  if (!text)
    return fail(options, text.getError().message(), WorldError);
  auto reproducer = compiler::parseReproducer((*text)->getBuffer());
  if (!reproducer)
    return fail(options, llvm::toString(reproducer.takeError()), InputRefused);
  compiler::shareActivities();
  Repetition again = repeat(*reproducer, options.limit);
  fmt::print("{}", printableLines(again.message));
  if (again.ending.isGood()) {
    fmt::print("{}\n", again.ending.code == Success ? "no failure: it compiles" : "no failure: it is refused");
    return ExitCode(again.ending.code);
  }
  fmt::print("the compiler failed: {}\n", describe(again, options.limit));
  if (options.reduced.empty())
    return InputRefused;
  std::string smaller = reducedInTime(*reproducer, again, options.seconds).text();
  if (Status status = format::writeFile(options.reduced, smaller); !status)
    return report(status.error());
  fmt::print("{} bytes of {} are left\n", smaller.size(), (*text)->getBufferSize());
  return InputRefused;
}

} // namespace

void addReproduce(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("reproduce", "Show an error of the compiler or of ptxas again");
  command->footer("Example: kpkg reproduce /tmp/kpkg-scale_blocks-sm_90a-1f0c3a.mlir\n"
                  "Exit code 0 says that the file compiles.");
  auto options = std::make_shared<ReproduceOptions>();
  command->add_option("file", options->file, "A file that a build kept")->required();
  command->add_option("--limit", options->limit, "Seconds that it may take; 0 is no limit")->capture_default_str();
  command->add_option("--reduce", options->reduced, "Also write a smaller file with the same failure");
  command->add_option("--seconds", options->seconds, "Time for --reduce")->capture_default_str();
  command->callback([options, &exitCode] { exitCode = reproduce(*options); });
}

} // namespace kpkg::command
