// `kpkg build`: .k sources to a package.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Diagnostics.h"
#include "compiler/diag/Render.h"
#include "compiler/driver/Compile.h"
#include "tools/kpkg/Commands.h"
#include "tools/kpkg/OutputFile.h"
#include "tools/kpkg/ProgressLine.h"
#include "llvm/Support/Error.h"
#include <fmt/format.h>
#include <unistd.h>

namespace kpkg::command {

namespace {

using namespace kpkg::compiler;

struct BuildOptions {
  CompileOptions compile;
  std::string output;
  std::string targets;
  std::vector<std::string> defines;
  std::string emit;
  std::string diagnosticsFormat = "text";
  bool checkReproducible = false;
};

ExitCode fail(llvm::Error error) {
  bool isRefused = error.isA<KernelRefused>();
  fmt::print(stderr, "kpkg: error: {}\n", llvm::toString(std::move(error)));
  return isRefused ? InputRefused : WorldError;
}

void show(const DiagnosticEngine &diags, const SourceManager &sources, const std::string &format) {
  if (format == "json") {
    for (const Diagnostic &diagnostic : diags.diagnostics())
      fmt::print(stderr, "{}\n", renderJson(diagnostic, sources));
    return;
  }
  fmt::print(stderr, "{}", renderText(diags, sources, {.colour = wantsColour(STDERR_FILENO)}));
}

std::vector<std::string> splitTargets(const std::string &text) {
  std::vector<std::string> targets;
  size_t start = 0;
  while (start < text.size()) {
    size_t comma = std::min(text.find(',', start), text.size());
    if (comma > start)
      targets.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return targets;
}

ExitCode emitStage(const BuildOptions &options, SourceManager &sources, DiagnosticEngine &diags) {
  Stage stage = options.emit == "tile"   ? Stage::Tile
                : options.emit == "plan" ? Stage::Plan
                : options.emit == "kgpu" ? Stage::Kgpu
                : options.emit == "ptx"  ? Stage::Ptx
                : options.emit == "sass" ? Stage::Sass
                                         : Stage::Llvm;
  auto text = emit(options.compile, stage, sources, diags);
  if (!text)
    return fail(text.takeError());
  show(diags, sources, options.diagnosticsFormat);
  if (!*text)
    return InputRefused;
  if (options.output.empty()) {
    fmt::print("{}", **text);
    return Success;
  }
  if (llvm::Error error = writeAtomically(options.output, **text))
    return fail(std::move(error));
  return Success;
}

ExitCode build(BuildOptions &options) {
  options.compile.targets = splitTargets(options.targets);
  for (const std::string &define : options.defines) {
    size_t equals = define.find('=');
    if (equals == 0 || equals == std::string::npos) {
      fmt::print(stderr, "kpkg: error: -D {}: write NAME=VALUE\n", define);
      return UsageError;
    }
    options.compile.defines.emplace_back(define.substr(0, equals), define.substr(equals + 1));
  }
  SourceManager sources;
  DiagnosticEngine diags;
  if (!options.emit.empty())
    return emitStage(options, sources, diags);
  if (options.output.empty()) {
    fmt::print(stderr, "kpkg: error: -o FILE is needed\n");
    return UsageError;
  }

  std::optional<std::string> package;
  std::vector<std::string> remarks;
  {
    ProgressLine line;
    auto compiled = compile(options.compile, sources, diags, line.callback(), [&](const std::string &text) { remarks.push_back(text); });
    if (!compiled)
      return fail(compiled.takeError());
    package = std::move(*compiled);
  }
  show(diags, sources, options.diagnosticsFormat);
  for (const std::string &remark : remarks)
    fmt::print(stderr, "kpkg: note: {}\n", remark);
  if (!package)
    return InputRefused;
  if (options.checkReproducible) {
    SourceManager freshSources;
    DiagnosticEngine freshDiags;
    auto again = compile(options.compile, freshSources, freshDiags);
    if (!again)
      return fail(again.takeError());
    if (*again != package) {
      fmt::print(stderr, "kpkg: error: a second build gave other bytes\n");
      return WorldError;
    }
  }
  if (llvm::Error error = writeAtomically(options.output, *package))
    return fail(std::move(error));
  return Success;
}

} // namespace

void addBuild(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("build", "Compile .k sources into a package");
  command->footer("Example: kpkg build gemm.k -o gemm.kpkg --target x86-64-v3,aarch64,sm_90a\n"
                  "         kpkg build kernels_src/softmax --emit=tile");
  auto options = std::make_shared<BuildOptions>();
  command->add_option("inputs", options->compile.inputs, "Source files, or folders whose .k files are all taken")->required();
  command->add_option("-o,--output", options->output, "The package to write");
  command->add_option("--target", options->targets,
                      "Comma-separated targets: x86-64-v3, x86-64-v4, x86-64-v4-bf16, aarch64, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120, devices such as "
                      "h200, ptx, native; default: native");
  command->add_option("-I", options->compile.importPaths, "A folder in which imports look")->allow_extra_args(false);
  command->add_option("-D", options->defines, "NAME=VALUE: sets a module's comptime constant")->allow_extra_args(false);
  command->add_option("--tuning", options->compile.tuning, "Rows of a tuning table to include, from kpkg tune --rows; of a folder tuning.json is included")
      ->allow_extra_args(false);
  command->add_option("-O", options->compile.optLevel, "Optimisation level, -O0 to -O3")->check(CLI::Range(0, 3))->capture_default_str();
  command->add_option("-j,--jobs", options->compile.jobs, "Threads; default: one for each processor");
  command->add_option("--emit", options->emit, "Print a stage instead of writing a package")
      ->check(CLI::IsMember({"tile", "plan", "llvm", "kgpu", "ptx", "sass"}));
  command->add_option("--diagnostics", options->diagnosticsFormat, "text, or json: one object a line, on standard error")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_flag("--check-reproducible", options->checkReproducible, "Build twice and compare the bytes");
  command->callback([options, &exitCode] { exitCode = build(*options); });
}

} // namespace kpkg::command
