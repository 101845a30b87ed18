// `kpkg build`: compiles .k sources to a package.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Diagnostics.h"
#include "compiler/diag/Render.h"
#include "compiler/driver/Compile.h"
#include "compiler/driver/Inputs.h"
#include "compiler/driver/Targets.h"
#include "runtime/format/OutputFile.h"
#include "tools/kpkg/DefaultTargets.h"
#include "tools/kpkg/Defines.h"
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/ProgressLine.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/WhyReport.h"
#include "tools/kpkg/supervise/Failures.h"
#include "llvm/Support/Error.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <unistd.h>

namespace kpkg::command {

namespace {

using namespace kpkg::compiler;

struct BuildOptions {
  CompileOptions compile;
  std::string output;
  std::optional<std::string> targets;
  std::vector<std::string> defines;
  std::vector<std::string> dtypes;
  std::vector<std::string> sanitize;
  std::string emit;
  std::string diagnosticsFormat = "text";
  std::string depfile;
  bool listFiles = false;
  bool fastMath = false;
  bool checkReproducible = false;
  Limits limits;
  WhyOptions why;
};

/// Number of errors after which further ones are only counted.
constexpr uint32_t mostErrors = 20;

void note(const std::string &text) { fmt::print(stderr, "kpkg: note: {}\n", text); }

ExitCode fail(llvm::Error error) {
  ExitCode code = error.isA<WrongUse>() ? UsageError : error.isA<KernelRefused>() ? InputRefused : WorldError;
  fmt::print(stderr, "kpkg: error: {}\n", llvm::toString(std::move(error)));
  return code;
}

void show(const DiagnosticEngine &diags, const SourceManager &sources, const BuildOptions &options) {
  if (options.diagnosticsFormat == "json") {
    for (const Diagnostic &diagnostic : diags.diagnostics())
      fmt::print(stderr, "{}\n", renderJson(diagnostic, sources));
    return;
  }
  fmt::print(stderr, "{}", renderText(diags, sources, {.colour = wantsColour(STDERR_FILENO)}));
  if (!diags.hasErrors())
    return;
  for (const std::string &input : options.compile.inputs) {
    if (!std::filesystem::is_directory(input))
      continue;
    auto taken = findSources({input});
    if (taken)
      note(
          fmt::format("of the folder {} all {} .k files were taken, those of folders in it too", input, taken->size()));
    else
      llvm::consumeError(taken.takeError());
  }
}

/// Selects the targets. Returns false after a message.
bool chooseTargets(BuildOptions &options) {
  if (!options.targets) {
    DefaultTargets chosen = defaultTargets();
    options.compile.targets = std::move(chosen.names);
    for (const std::string &text : chosen.notes)
      note(text);
    return true;
  }
  options.compile.targets = splitTargets(*options.targets);
  for (const std::string &target : options.compile.targets)
    if (target.empty()) {
      fmt::print(stderr, "kpkg: error: --target \"{}\": a name is missing; kpkg build --help lists targets\n",
                 *options.targets);
      return false;
    }
  return true;
}

ExitCode listFiles(const BuildOptions &options, SourceManager &sources, DiagnosticEngine &diags) {
  if (llvm::Error error = loadOnly(options.compile, sources, diags))
    return fail(std::move(error));
  show(diags, sources, options);
  if (diags.hasErrors())
    return InputRefused;
  for (const std::string &file : filesRead(options.compile, sources))
    fmt::print("{}\n", file);
  return Success;
}

/// Returns a rule for Make and Ninja with the package's dependencies.
std::string dependencies(const BuildOptions &options, const SourceManager &sources) {
  auto escaped = [](const std::string &path) {
    std::string text;
    for (char c : path) {
      if (c == ' ' || c == '#' || c == '\\')
        text += '\\';
      else if (c == '$')
        text += '$';
      text += c;
    }
    return text;
  };
  std::string text = escaped(options.output) + ":";
  for (const std::string &file : filesRead(options.compile, sources))
    text += " \\\n  " + escaped(file);
  return text + "\n";
}

ExitCode emitStage(const BuildOptions &options, SourceManager &sources, DiagnosticEngine &diags) {
  Stage stage = options.emit == "tile"   ? Stage::Tile
                : options.emit == "plan" ? Stage::Plan
                : options.emit == "kgpu" ? Stage::Kgpu
                : options.emit == "gpu"  ? Stage::Gpu
                : options.emit == "nvvm" ? Stage::Nvvm
                : options.emit == "ptx"  ? Stage::Ptx
                : options.emit == "sass" ? Stage::Sass
                                         : Stage::Llvm;
  auto text = emit(options.compile, stage, sources, diags);
  if (!text)
    return fail(text.takeError());
  show(diags, sources, options);
  if (!*text)
    return InputRefused;
  if (options.output.empty()) {
    fmt::print("{}", **text);
    return Success;
  }
  if (Status status = format::writeFile(options.output, **text); !status)
    return report(status.error());
  return Success;
}

/// Completes short names of dtypes, each once: packages record the list. The compiler reports unknown ones.
void readDTypes(BuildOptions &options) {
  std::vector<std::string> &dtypes = options.compile.dtypes;
  for (const std::string &text : options.dtypes) {
    std::optional<kpkg::DType> dtype = parseDType(text);
    std::string name = dtype ? kpkg_dtype_name(int32_t(*dtype)) : text;
    if (std::find(dtypes.begin(), dtypes.end(), name) == dtypes.end())
      dtypes.push_back(name);
  }
}

/// Selects the checks of --sanitize. Returns false after a message.
bool readChecks(BuildOptions &options) {
  CompileOptions &compile = options.compile;
  const std::map<std::string, bool *> checks = {{"bounds", &compile.checkBounds},
                                                {"nan", &compile.checkNan},
                                                {"uninit", &compile.checkUninit},
                                                {"race", &compile.checkRace}};
  for (const std::string &name : options.sanitize) {
    auto found = checks.find(name);
    if (found == checks.end()) {
      fmt::print(stderr, "kpkg: error: --sanitize={}: there are the checks bounds, nan, uninit and race\n", name);
      return false;
    }
    *found->second = true;
  }
  return true;
}

ExitCode checkSources(BuildOptions &options) {
  if (!options.targets)
    options.compile.targets = {"native", "ptx"}; // both cases of `target.has("gpu")`
  else if (!chooseTargets(options))
    return UsageError;
  if (!readDefines(options.defines, options.compile.defines))
    return UsageError;
  SourceManager sources;
  DiagnosticEngine diags(mostErrors);
  std::vector<std::string> remarks;
  llvm::Error error = check(options.compile, sources, diags, [&](const std::string &text) { remarks.push_back(text); });
  if (error)
    return fail(std::move(error));
  show(diags, sources, options);
  for (const std::string &remark : remarks)
    note(remark);
  return diags.hasErrors() ? InputRefused : Success;
}

/// Builds again, without code from the cache. Returns an error after a message if the bytes differ from `package`.
ExitCode checkReproducible(const BuildOptions &options, const std::string &package) {
  setenv("KPKG_CACHE_DIR", "", /*overwrite=*/1);
  SourceManager sources;
  DiagnosticEngine diags;
  auto again = compile(options.compile, sources, diags);
  if (!again)
    return fail(again.takeError());
  if (*again == package)
    return Success;
  fmt::print(stderr, "kpkg: error: a second build gave other bytes\n");
  return WorldError;
}

/// Writes the package and the rule for Make and Ninja.
ExitCode write(const BuildOptions &options, const std::string &package, const SourceManager &sources) {
  if (Status status = format::writeFile(options.output, package); !status)
    return report(status.error());
  if (!options.depfile.empty())
    if (Status status = format::writeFile(options.depfile, dependencies(options, sources)); !status)
      return report(status.error());
  return Success;
}

/// Prints the report of --why on a package that was just built.
ExitCode explain(const BuildOptions &options, const std::string &package) {
  auto library = Library::openMemory(package, "the package");
  return library ? printWhy(*library, "the package", options.why) : report(library.error());
}

ExitCode compileAndWrite(const BuildOptions &options) {
  SourceManager sources;
  DiagnosticEngine diags(mostErrors);
  if (options.listFiles)
    return listFiles(options, sources, diags);
  if (!options.emit.empty())
    return emitStage(options, sources, diags);
  std::optional<std::string> package;
  std::vector<std::string> remarks;
  {
    ProgressLine line;
    auto compiled = compile(options.compile, sources, diags, line.callback(),
                            [&](const std::string &text) { remarks.push_back(text); });
    if (!compiled)
      return fail(compiled.takeError());
    package = std::move(*compiled);
  }
  show(diags, sources, options);
  for (const std::string &remark : remarks)
    note(remark);
  if (!package)
    return InputRefused;
  ExitCode code = options.checkReproducible ? checkReproducible(options, *package) : Success;
  if (code == Success && !options.output.empty())
    code = write(options, *package, sources);
  return code == Success && !options.why.kernel.empty() ? explain(options, *package) : code;
}

ExitCode build(BuildOptions &options) {
  if (!chooseTargets(options))
    return UsageError;
  if (options.fastMath)
    note("--use_fast_math changes nothing: float32 results that are only rounded to 16 bits take the GPU's fast "
         "instructions in any case, others are computed in full (docs/language.md)");
  if (!readDefines(options.defines, options.compile.defines) || !readChecks(options))
    return UsageError;
  readDTypes(options);
  if (options.compile.fast && !options.compile.tuning.empty())
    note("--tuning changes nothing: --fast leaves out rows of tuning tables");
  bool explains = !options.why.kernel.empty();
  bool isPackage = !options.listFiles && options.emit.empty();
  if (isPackage && options.output.empty() && !explains) {
    fmt::print(stderr, "kpkg: error: -o FILE is needed\n");
    return UsageError;
  }
  options.compile.explainedKernel = options.why.kernel;
  if (isPackage && options.output.empty())
    options.compile.onlyKernel = options.why.kernel; // the report needs no other
  return supervised(options.compile, options.limits, [&] { return compileAndWrite(options); });
}

/// Adds options that building and checking share.
void addSourceOptions(CLI::App &command, BuildOptions &options, const std::string &defaultTargets) {
  command.add_option("inputs", options.compile.inputs, "Source files, or folders whose .k files are all taken")
      ->required();
  command.add_option("--target", options.targets,
                     fmt::format("Comma-separated targets: {}, {}, devices such as h200, ptx, native; default: {}",
                                 fmt::join(compiler::targetNames(false), ", "),
                                 fmt::join(compiler::targetNames(true), ", "), defaultTargets));
  command.add_option("-I", options.compile.importPaths, "A folder in which imports look")->allow_extra_args(false);
  command.add_option("-D", options.defines, "NAME=VALUE: sets a module's comptime constant")->allow_extra_args(false);
  command.add_option("--diagnostics", options.diagnosticsFormat, "text, or json: one object a line, on standard error")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

} // namespace

void addCheck(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("check", "Check .k sources for CPUs and GPUs without making code");
  command->footer("Example: kpkg check gemm.k");
  auto options = std::make_shared<BuildOptions>();
  addSourceOptions(*command, *options, "native,ptx");
  command->callback([options, &exitCode] { exitCode = checkSources(*options); });
}

void addBuild(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("build", "Compile .k sources into a package; also called package");
  command->alias("package");
  command->footer("Example: kpkg build gemm.k -o gemm.kpkg --target x86-64-v3,aarch64,sm_90a\n"
                  "         kpkg build kernels_src/softmax --emit=tile");
  auto options = std::make_shared<BuildOptions>();
  addSourceOptions(*command, *options, "KPKG_TARGET, else TORCH_CUDA_ARCH_LIST with this CPU, else native");
  command->add_option("-o,--output", options->output, "The package to write");
  command
      ->add_option("--tuning", options->compile.tuning,
                   "Rows of a tuning table to include, from kpkg tune --rows; of a folder tuning.json is included")
      ->allow_extra_args(false);
  auto *level =
      command
          ->add_option("-O", options->compile.optLevel,
                       "Optimisation level, -O0 to -O3; -O0 builds fastest: on GPUs the first launch, as it comes")
          ->check(CLI::Range(0, 3))
          ->capture_default_str();
  command->add_flag("--fast", options->compile.fast,
                    "For trying kernels: -O0, and one variant of each kernel, slow and for any arguments");
  command
      ->add_option("--dtypes", options->dtypes,
                   "Leave out instances for dtypes of the same kind (floats, integers) as these, such as f32,bf16")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--sanitize", options->sanitize,
                   "Checks in kernels: bounds (indices of single elements and gathers), nan (stored floats), uninit "
                   "(elements that nothing wrote), race (blocks that interfere)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("-g", options->compile.lineTables,
                    "Line tables: profilers and debuggers show lines of the .k sources");
  command->add_option("-j,--jobs", options->compile.jobs, "Threads; default: one for each processor");
  addLimits(*command, options->limits);
  command
      ->add_option("--emit", options->emit,
                   "Print a stage instead of writing a package: of GPUs kgpu, gpu, nvvm, llvm, ptx or sass")
      ->check(CLI::IsMember({"tile", "plan", "kgpu", "gpu", "nvvm", "llvm", "ptx", "sass"}));
  addWhyOptions(*command, options->why)->excludes("--emit");
  command->add_option("--depfile", options->depfile, "Also write which files were read, as a rule for Make and Ninja");
  command->add_flag("--list-files", options->listFiles, "Print which files a build reads, and build nothing");
  command->add_flag("--use_fast_math,--use-fast-math", options->fastMath,
                    "Accepted, as nvcc's; what is approximated does not depend on it");
  command->add_flag("--check-reproducible", options->checkReproducible, "Build twice and compare the bytes");
  command->callback([options, level, &exitCode] {
    if (options->compile.fast && level->count() == 0)
      options->compile.optLevel = 0;
    exitCode = build(*options);
  });
}

} // namespace kpkg::command
