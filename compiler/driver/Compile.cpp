// The compiler as one page: source files in, package out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Compile.h"
#include "compiler/check/Program.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/driver/CompileInstances.h"
#include "compiler/driver/EncodeOps.h"
#include "compiler/driver/Inputs.h"
#include "compiler/pack/Package.h"
#include "compiler/source/Source.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// What of the command line decides the package's bytes.
std::string describeOptions(const CompileOptions &options, const BuildTargets &targets) {
  std::string text = "-O" + std::to_string(options.optLevel) + " --target " + targets.str();
  for (const auto &[name, value] : options.defines)
    text += " -D " + name + "=" + value;
  return text;
}

/// Text to a program in which every instance and op is checked; null when `diags` has errors.
Expected<std::unique_ptr<Program>> checkedProgram(const CompileOptions &options, SourceManager &sources,
                                                  DiagnosticEngine &diags) {
  ProgramOptions programOptions;
  programOptions.importPaths = options.importPaths;
  programOptions.defines = options.defines;
  std::unique_ptr<Program> program;
  if (options.texts.empty()) {
    auto paths = findSources(options.inputs);
    if (!paths)
      return paths.takeError();
    program = Program::load(*paths, programOptions, sources, diags);
  } else {
    std::vector<const SourceFile *> files;
    for (const auto &[name, text] : options.texts)
      files.push_back(&sources.add(name, text));
    program = Program::loadSources(files, programOptions, sources, diags);
  }
  if (!diags.hasErrors())
    program->check();
  if (diags.hasErrors())
    return nullptr;
  return program;
}

} // namespace

Expected<std::optional<std::string>> compile(const CompileOptions &options, SourceManager &sources,
                                             DiagnosticEngine &diags, const Progress &progress, const Remark &remark) {
  auto targets = resolveTargets(options.targets);
  if (!targets)
    return targets.takeError();

  // Text -> a program without open questions.
  auto program = checkedProgram(options, sources, diags);
  if (!program)
    return program.takeError();
  if (!*program)
    return std::nullopt;

  // Kernel instances -> tile IR -> machine code, for every target.
  auto compiled = compileInstances(**program, sources, *targets, options.optLevel, options.jobs, progress);
  if (!compiled)
    return compiled.takeError();

  if (remark)
    for (const std::string &note : compiled->notes)
      remark(note);

  // Ops -> plan IR -> bytecode.
  auto plans = encodeOps(**program, sources);
  if (!plans)
    return plans.takeError();

  PackageContents contents;
  contents.program = program->get();
  contents.instances = std::move(compiled->instances);
  contents.objects = std::move(compiled->objects);
  contents.tileBytecode = std::move(compiled->tileBytecode);
  contents.plans = std::move(*plans);
  contents.sources = packedSources(sources);
  contents.options = describeOptions(options, *targets);
  auto package = writePackage(contents);
  if (!package)
    return package.takeError();
  return std::move(*package);
}

Expected<std::optional<std::string>> emit(const CompileOptions &options, Stage stage, SourceManager &sources,
                                          DiagnosticEngine &diags) {
  auto targets = resolveTargets(options.targets);
  if (!targets)
    return targets.takeError();
  auto program = checkedProgram(options, sources, diags);
  if (!program)
    return program.takeError();
  if (!*program)
    return std::nullopt;
  switch (stage) {
  case Stage::Tile: return emitTile(**program, sources);
  case Stage::Plan: return emitPlan(**program, sources);
  case Stage::Llvm:
    if (targets->cpus.empty())
      return createStringError("--emit=llvm shows CPU code: name a CPU target");
    return emitLlvm(**program, sources, *targets->cpus.front(), options.optLevel);
  case Stage::Kgpu:
  case Stage::Ptx:
    if (targets->chips.empty())
      return createStringError("--emit=kgpu and --emit=ptx show GPU code: name a chip, such as --target sm_90a");
    return emitGpu(**program, sources, targets->chips.front(), options.optLevel, stage);
  }
  llvm_unreachable("a stage without a printer");
}

} // namespace kpkg::compiler
