// Runs the `kpkg` command.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Targets.h"
#include "tools/kpkg/Commands.h"
#include <algorithm>
#include <fmt/format.h>

using namespace kpkg::command;

static bool hasCommand(CLI::App &app, const std::string &name) {
  for (const CLI::App *command : app.get_subcommands([](CLI::App *) { return true; }))
    if (command->check_name(name))
      return true;
  return false;
}

/// Options of nvcc that choose architectures.
constexpr std::string_view nvccOptions[] = {"-arch", "--arch", "--gpu-architecture", "-gencode", "--generate-code"};

/// Answers options of nvcc in a command line that was refused.
static void answerNvcc(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    std::string option(argv[i]);
    std::string name = option.substr(0, option.find('='));
    if (std::find(std::begin(nvccOptions), std::end(nvccOptions), name) == std::end(nvccOptions))
      continue;
    std::string value = option != name ? option.substr(name.size()) : i + 1 < argc ? argv[i + 1] : "";
    std::string chip = value.substr(std::min(value.rfind("sm_"), value.size()));
    auto targets = kpkg::compiler::resolveTargets({chip});
    if (!targets)
      llvm::consumeError(targets.takeError());
    fmt::print(stderr, "kpkg: {} is an option of nvcc: write --target {}\n", name, targets ? targets->str() : "sm_90a");
  }
}

int main(int argc, char **argv) {
  CLI::App app("Compiles .k kernels into .kpkg packages, runs them and tells about them.", "kpkg");
  app.require_subcommand(1);
  app.set_version_flag("--version", versionText);
  app.footer("Example: kpkg build gemm.k -o gemm.kpkg && kpkg run gemm.kpkg gemm --input \"a=randn(512,512,f32)\" "
             "--input \"b=randn(512,512,f32)\" --check\n"
             "Exit codes: 0 success; 1 source, package or arguments refused, or a check failed; 2 wrong command line; "
             "3 file, device or tool failed.");
  int exitCode = Success;
  addBuild(app, exitCode);
  addCheck(app, exitCode);
  addFormat(app, exitCode);
  addNew(app, exitCode);
  addTest(app, exitCode);
  addWatch(app, exitCode);
  addLsp(app, exitCode);
  addRun(app, exitCode);
  addBench(app, exitCode);
  addProfile(app, exitCode);
  addTune(app, exitCode);
  addInfo(app, exitCode);
  addExplain(app, exitCode);
  addVerify(app, exitCode);
  addReplay(app, exitCode);
  addReproduce(app, exitCode);
  addRetarget(app, exitCode);
  addSign(app, exitCode);
  addLock(app, exitCode);
  addKeygen(app, exitCode);
  addDiff(app, exitCode);
  addStrip(app, exitCode);
  addSplit(app, exitCode);
  addMerge(app, exitCode);
  addDoctor(app, exitCode);
  addVersion(app, exitCode);
  if (argc > 1 && argv[1][0] != '-' && !hasCommand(app, argv[1])) {
    fmt::print(stderr, "kpkg: error: there is no command '{}'; kpkg --help lists them\n", argv[1]);
    return UsageError;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (app.exit(error) == 0)
      return Success;
    answerNvcc(argc, argv);
    return UsageError;
  }
  return exitCode;
}
