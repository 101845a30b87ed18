// `kpkg fmt`: formats .k sources in the canonical layout.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Render.h"
#include "compiler/driver/Inputs.h"
#include "compiler/syntax/Format.h"
#include "runtime/format/OutputFile.h"
#include "tools/kpkg/Report.h"
#include "llvm/Support/Error.h"
#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <iterator>
#include <unistd.h>

namespace kpkg::command {

namespace {

using namespace kpkg::compiler;

struct FormatOptions {
  std::vector<std::string> inputs;
  bool check = false;
};

/// Returns the formatted source; nothing after a message, with `code` set.
std::optional<std::string> formatted(const SourceFile &file, SourceManager &sources, ExitCode &code) {
  DiagnosticEngine diags;
  auto text = formatSource(file, diags);
  if (!text) {
    fmt::print(stderr, "{}", renderText(diags, sources, {.colour = wantsColour(STDERR_FILENO)}));
    code = InputRefused;
  } else if (!hasSameTokens(file, sources.add(file.path(), *text))) {
    fmt::print(stderr,
               "kpkg: error: {}: its layout would be another program, so that it stays as it is; this is a bug "
               "of kpkg, please report it\n",
               file.path());
    code = WorldError;
    text.reset();
  }
  return text;
}

ExitCode formatStandardInput(const FormatOptions &options) {
  SourceManager sources;
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  if (text.size() > SourceManager::maxFileBytes) {
    fmt::print(stderr, "kpkg: error: standard input has {} bytes, at most {} are read\n", text.size(),
               SourceManager::maxFileBytes);
    return InputRefused;
  }
  const SourceFile &file = sources.add("<stdin>", std::move(text));
  ExitCode code = Success;
  auto result = formatted(file, sources, code);
  if (!result)
    return code;
  if (!options.check)
    fmt::print("{}", *result);
  else if (*result != file.text())
    return fmt::print(stderr, "kpkg: error: <stdin>: not formatted\n"), InputRefused;
  return Success;
}

ExitCode formatFile(const std::string &path, bool isCheck) {
  SourceManager sources;
  std::string reason;
  const SourceFile *file = sources.load(path, reason);
  if (!file) {
    fmt::print(stderr, "kpkg: error: {}: {}\n", path, reason);
    return WorldError;
  }
  ExitCode code = Success;
  auto result = formatted(*file, sources, code);
  if (!result || *result == file->text())
    return code;
  if (isCheck) {
    fmt::print(stderr, "kpkg: error: {}: not formatted; run kpkg fmt {}\n", path, path);
    return InputRefused;
  }
  if (Status status = format::writeFile(path, *result); !status)
    return report(status.error());
  fmt::print("formatted {}\n", path);
  return Success;
}

ExitCode formatAll(const FormatOptions &options) {
  if (std::find(options.inputs.begin(), options.inputs.end(), "-") != options.inputs.end()) {
    if (options.inputs.size() == 1)
      return formatStandardInput(options);
    fmt::print(stderr, "kpkg: error: `-` is standard input: give it alone\n");
    return UsageError;
  }
  auto paths = findSources(options.inputs);
  if (!paths) {
    fmt::print(stderr, "kpkg: error: {}\n", llvm::toString(paths.takeError()));
    return WorldError;
  }
  ExitCode worst = Success;
  for (const std::string &path : *paths)
    worst = std::max(worst, formatFile(path, options.check));
  return worst;
}

} // namespace

void addFormat(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("fmt", "Write .k sources in the one layout; what they mean stays");
  command->footer("Example: kpkg fmt gemm.k\n"
                  "         kpkg fmt --check kernels");
  auto options = std::make_shared<FormatOptions>();
  command
      ->add_option("inputs", options->inputs,
                   "Source files, folders whose .k files are all taken, or - for standard input to standard output")
      ->required();
  command->add_flag("--check", options->check, "Write nothing; exit code 1 if a source has another layout");
  command->callback([options, &exitCode] { exitCode = formatAll(*options); });
}

} // namespace kpkg::command
