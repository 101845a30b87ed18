// `kpkg lsp`: serves editors by the language server protocol, over standard input and output.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Targets.h"
#include "compiler/lsp/Server.h"
#include "tools/kpkg/Commands.h"
#include "tools/kpkg/Defines.h"

namespace kpkg::command {

namespace {

struct LspOptions {
  lsp::AnalysisOptions analysis;
  std::vector<std::string> defines;
  std::string target = "sm_90a";
  bool overStandardStreams = false;
};

ExitCode serveEditor(LspOptions &options) {
  if (!readDefines(options.defines, options.analysis.program.defines))
    return UsageError;
  auto targets = compiler::resolveTargets(options.target);
  if (!targets) {
    llvm::errs() << "kpkg lsp: " << llvm::toString(targets.takeError()) << '\n';
    return UsageError;
  }
  if (targets->chips.size() != 1 || !targets->cpus.empty()) {
    llvm::errs() << "kpkg lsp: --target takes one GPU, such as sm_90a, not " << options.target << '\n';
    return UsageError;
  }
  options.analysis.chip = targets->chips.front();
  return lsp::serve(stdin, llvm::outs(), options.analysis, versionText()) ? Success : InputRefused;
}

} // namespace

void addLsp(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("lsp", "Serve an editor by the language server protocol, on standard streams");
  command->footer(
      "Example: kpkg lsp -I shared\nEditors start it: docs/editors.md has the settings of VS Code, Neovim and others.");
  auto options = std::make_shared<LspOptions>();
  command->add_option("-I", options->analysis.program.importPaths, "A folder in which imports look")
      ->allow_extra_args(false);
  command->add_option("-D", options->defines, "NAME=VALUE: sets a module's comptime constant")->allow_extra_args(false);
  command->add_option("--target", options->target, "The GPU for which hovers show the layouts of tiles")
      ->capture_default_str();
  command->add_flag("--stdio", options->overStandardStreams, "Accepted, since editors give it; there is no other way");
  command->callback([options, &exitCode] { exitCode = serveEditor(*options); });
}

} // namespace kpkg::command
