// `kpkg lsp`: serves editors by the language server protocol, over standard input and output.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Server.h"
#include "tools/kpkg/Commands.h"
#include "tools/kpkg/Defines.h"

namespace kpkg::command {

namespace {

struct LspOptions {
  compiler::ProgramOptions program;
  std::vector<std::string> defines;
  bool overStandardStreams = false;
};

ExitCode serveEditor(LspOptions &options) {
  if (!readDefines(options.defines, options.program.defines))
    return UsageError;
  return lsp::serve(stdin, llvm::outs(), options.program, versionText()) ? Success : InputRefused;
}

} // namespace

void addLsp(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("lsp", "Serve an editor by the language server protocol, on standard streams");
  command->footer(
      "Example: kpkg lsp -I shared\nEditors start it: docs/editors.md has the settings of VS Code, Neovim and others.");
  auto options = std::make_shared<LspOptions>();
  command->add_option("-I", options->program.importPaths, "A folder in which imports look")->allow_extra_args(false);
  command->add_option("-D", options->defines, "NAME=VALUE: sets a module's comptime constant")->allow_extra_args(false);
  command->add_flag("--stdio", options->overStandardStreams, "Accepted, since editors give it; there is no other way");
  command->callback([options, &exitCode] { exitCode = serveEditor(*options); });
}

} // namespace kpkg::command
