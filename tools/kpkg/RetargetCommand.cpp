// `kpkg retarget`: adds the code of another target from the sources that a package contains.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/temporary/TemporaryFolder.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/diag/Render.h"
#include "compiler/driver/Compile.h"
#include "compiler/driver/Targets.h"
#include "compiler/source/Source.h"
#include "tools/kpkg/DefaultTargets.h"
#include "tools/kpkg/ProgressLine.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/edit/PackedBuild.h"
#include "tools/kpkg/supervise/Failures.h"
#include <unistd.h>

namespace kpkg::command {

namespace {

using namespace kpkg::compiler;

struct RetargetOptions {
  std::string package, output, targets;
  unsigned jobs = 0;
  Limits limits;
};

ExitCode fail(llvm::Error error) {
  ExitCode code = error.isA<WrongUse>() ? UsageError : error.isA<KernelRefused>() ? InputRefused : WorldError;
  fmt::print(stderr, "kpkg: error: {}\n", llvm::toString(std::move(error)));
  return code;
}

ExitCode compileAndWrite(const CompileOptions &compile, const RetargetOptions &options, bool wasSigned) {
  SourceManager sources;
  DiagnosticEngine diags;
  std::optional<std::string> package;
  {
    ProgressLine line;
    auto compiled = compiler::compile(compile, sources, diags, line.callback());
    if (!compiled)
      return fail(compiled.takeError());
    package = std::move(*compiled);
  }
  if (!package) {
    fmt::print(stderr, "{}", renderText(diags, sources, {.colour = wantsColour(STDERR_FILENO)}));
    return InputRefused;
  }
  return edit::writePackage(options.output.empty() ? options.package : options.output, *package, wasSigned);
}

ExitCode retarget(const RetargetOptions &options) {
  auto package = edit::OpenedPackage::open(options.package);
  if (!package)
    return report(package.error());
  auto folder = TemporaryFolder::create();
  if (!folder)
    return fail(folder.takeError());
  auto compile = edit::packedBuild(*package, folder->file(""));
  if (!compile)
    return report(compile.error());
  for (const std::string &name : splitTargets(options.targets))
    compile->targets.push_back(name);
  compile->jobs = options.jobs;
  return supervised(*compile, options.limits, [&] { return compileAndWrite(*compile, options, package->isSigned()); });
}

} // namespace

void addRetarget(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("retarget", "Add the code of a target from the sources in a package");
  command->footer("Example: kpkg retarget gemm.kpkg --target sm_120\n"
                  "The package has the bytes that a build from the source tree for all these targets has.");
  auto options = std::make_shared<RetargetOptions>();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command->add_option("--target", options->targets, "Comma-separated targets, as for kpkg build")->required();
  command->add_option("-o,--output", options->output, "Write the package here instead of back");
  command->add_option("-j,--jobs", options->jobs, "Threads; default: one for each processor");
  addLimits(*command, options->limits);
  command->callback([options, &exitCode] { exitCode = retarget(*options); });
}

} // namespace kpkg::command
