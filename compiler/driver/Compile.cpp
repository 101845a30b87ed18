// Implements the compiler as one page: source files in, package out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Compile.h"
#include "compiler/check/Program.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/diag/NearestName.h"
#include "compiler/driver/CompileInstances.h"
#include "compiler/driver/EncodeOps.h"
#include "compiler/driver/Guard.h"
#include "compiler/driver/Inputs.h"
#include "compiler/driver/SelectInstances.h"
#include "compiler/driver/Tests.h"
#include "compiler/pack/Package.h"
#include "compiler/pack/TuningRows.h"
#include "compiler/source/Source.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <map>

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// Returns the part of the command line that determines the package's bytes.
std::string describeOptions(const CompileOptions &options, const BuildTargets &targets) {
  std::string text = "-O" + std::to_string(options.optLevel) + " --target " + targets.str();
  if (options.fast)
    text += " --fast";
  if (!options.dtypes.empty())
    text += " --dtypes=" + join(options.dtypes, ",");
  if (options.lineTables)
    text += " -g";
  if (!options.explainedKernel.empty())
    text += " --why " + options.explainedKernel;
  std::vector<std::string> checks;
  for (auto [isOn, name] : {std::pair(options.checkBounds, "bounds"),
                            {options.checkNan, "nan"},
                            {options.checkUninit, "uninit"},
                            {options.checkRace, "race"}})
    if (isOn)
      checks.push_back(name);
  if (!checks.empty())
    text += " --sanitize=" + join(checks, ",");
  for (const auto &[name, value] : options.defines)
    text += " -D " + name + "=" + value;
  return text;
}

/// Loads a program whose instances and ops are not checked yet.
Expected<std::unique_ptr<Program>> loadedProgram(const CompileOptions &options, StringRef targetKind,
                                                 SourceManager &sources, DiagnosticEngine &diags) {
  ProgramOptions programOptions;
  programOptions.importPaths = options.importPaths;
  programOptions.defines = options.defines;
  programOptions.targetKind = targetKind.str();
  if (options.checkUninit)
    programOptions.shadows.push_back(writtenShadow);
  if (options.checkRace)
    programOptions.shadows.push_back(accessesShadow);
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
  return program;
}

/// Loads a program and checks every instance and op. Returns null if `diags` has errors.
Expected<std::unique_ptr<Program>> checkedProgram(const CompileOptions &options, StringRef targetKind,
                                                  SourceManager &sources, DiagnosticEngine &diags) {
  auto program = loadedProgram(options, targetKind, sources, diags);
  if (!program)
    return program.takeError();
  if (!diags.hasErrors())
    (*program)->check();
  if (diags.hasErrors())
    return nullptr;
  return std::move(*program);
}

/// Splits targets by kind. CPUs and GPUs each see the source with their own `target`, so they may have different
/// instances. TPUs have those of CPUs: tiles of one processor, without warps or clusters.
std::vector<BuildTargets> kindsOf(const BuildTargets &targets) {
  std::vector<BuildTargets> kinds;
  if (!targets.cpus.empty() || targets.tpu || !targets.hasGpu()) {
    kinds.emplace_back();
    kinds.back().cpus = targets.cpus;
    kinds.back().tpu = targets.tpu;
  }
  if (targets.hasGpu()) {
    kinds.push_back(targets);
    kinds.back().cpus.clear();
    kinds.back().tpu = false;
  }
  return kinds;
}

StringRef nameOfKind(const BuildTargets &kind) { return kind.hasGpu() ? "gpu" : "cpu"; }

/// Adds the rows of tuning tables that the command line names, for existing instances.
Error addTuning(PackageContents &contents, const CompileOptions &options, const Remark &remark) {
  if (options.fast) // has no alternatives to choose from
    return Error::success();
  std::vector<std::string> files = findTuning(options.inputs), notes;
  append_range(files, options.tuning);
  for (const std::string &file : files) {
    auto buffer = MemoryBuffer::getFile(file);
    if (!buffer)
      return createStringError(buffer.getError(), "cannot read %s", file.c_str());
    if (Error error = addTuningRows(contents, file, (*buffer)->getBuffer().str(), notes))
      return error;
  }
  for (const std::string &note : notes)
    if (remark)
      remark(note);
  return Error::success();
}

/// Notes which kernels of the named sources are omitted, because no op launches them on any target. Imported modules
/// may well have unused kernels.
void remarkOnKernels(ArrayRef<std::unique_ptr<Program>> programs, const SourceManager &sources, const Remark &remark) {
  if (programs.front()->ops().empty())
    return remark("the package has no op, so that nothing of it can be called: @register.op makes a function one");
  SmallVector<std::string> idle;
  for (auto [k, kernel] : enumerate(programs.front()->kernels())) {
    size_t index = k;
    if (kernel.isImported ||
        any_of(programs, [&](const auto &program) { return program->kernels()[index].isLaunched; }))
      continue;
    idle.push_back(formatv("`{0}` ({1})", kernel.name, sources.describe(kernel.range)).str());
  }
  if (!idle.empty())
    remark("left out, since no op launches them for these targets: " + join(idle, ", "));
}

/// Notes which launches no call can use on any target.
void remarkOnLaunches(ArrayRef<std::unique_ptr<Program>> programs, const SourceManager &sources, const Remark &remark) {
  auto placesIn = [&](const Program &program) {
    std::map<std::string, IdleLaunch> places; // both programs read the sources, with different ranges
    for (const IdleLaunch &launch : program.idleLaunches())
      places.emplace(sources.describe(launch.range), launch);
    return places;
  };
  for (const IdleLaunch &launch : programs.front()->idleLaunches()) {
    std::string place = sources.describe(launch.range);
    if (all_of(programs, [&](const auto &program) { return placesIn(*program).count(place); }))
      remark(formatv("{0}: this launch of `{1}` never finds an instance: {2}", place,
                     programs.front()->kernels()[launch.kernel].name, launch.why)
                 .str());
  }
}

void remarkOnPrograms(ArrayRef<std::unique_ptr<Program>> programs, ArrayRef<std::string> notes,
                      const SourceManager &sources, const Remark &remark) {
  if (!remark)
    return;
  for (const std::string &note : notes)
    remark(note);
  remarkOnKernels(programs, sources, remark);
  remarkOnLaunches(programs, sources, remark);
}

/// Returns an error if no kernel has the name. Without a name, all kernels are meant.
Error checkKernelName(const Program &program, const std::string &name) {
  std::vector<std::string> known;
  for (InstanceRef ref : checkedInstances(program)) // of the prelude only those that an op launches
    if (const std::string &one = program.kernels()[ref.kernel].name; known.empty() || known.back() != one)
      known.push_back(one);
  if (name.empty() || is_contained(known, name))
    return Error::success();
  std::string nearest = nearestName(name, known);
  return make_error<WrongUse>("the sources have no kernel '" + name + "', but " + join(known, ", ") +
                              (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
}

Expected<std::optional<std::string>> makePackage(const CompileOptions &options, SourceManager &sources,
                                                 DiagnosticEngine &diags, const Progress &progress,
                                                 const Remark &remark) {
  if (Error error = checkDTypeNames(options))
    return std::move(error);
  auto targets = resolveTargets(options.targets);
  if (!targets)
    return targets.takeError();

  // Text -> checked program.
  std::vector<BuildTargets> kinds = kindsOf(*targets);
  std::vector<std::unique_ptr<Program>> programs;
  PackageContents contents;
  for (const BuildTargets &kind : kinds) {
    auto program = checkedProgram(options, nameOfKind(kind), sources, diags);
    if (!program)
      return program.takeError();
    if (!*program)
      return std::nullopt;
    programs.push_back(std::move(*program));
    if (contents.sources.empty()) // the next program reads the same files again
      contents.sources = packedSources(sources);
  }
  contents.program = programs.front().get();
  if (Error error = checkKernelName(*programs.front(), options.onlyKernel))
    return std::move(error);
  remarkOnPrograms(programs, targets->notes, sources, remark);

  // Kernel instances -> tile IR -> machine code, for every target.
  for (auto [kind, program] : zip(kinds, programs)) {
    auto compiled = compileInstances(*program, sources, kind, options, progress);
    if (!compiled)
      return compiled.takeError();
    append_range(contents.instances, compiled->instances);
    std::move(compiled->objects.begin(), compiled->objects.end(), std::back_inserter(contents.objects));
    if (contents.tileBytecode.empty())
      contents.tileBytecode = std::move(compiled->tileBytecode);
    if (remark)
      for (const std::string &note : compiled->notes)
        remark(note);
  }

  // Ops -> plan IR -> bytecode.
  auto plans = encodeOps(*programs.front(), *programs.back(), sources, contents.instances);
  if (!plans)
    return plans.takeError();
  contents.plans = std::move(*plans);
  if (auto error = addTuning(contents, options, remark))
    return std::move(error);
  contents.options = describeOptions(options, *targets);
  auto package = writePackage(contents);
  if (!package)
    return package.takeError();
  return std::move(*package);
}

Expected<std::optional<std::string>> stageText(const CompileOptions &options, Stage stage, SourceManager &sources,
                                               DiagnosticEngine &diags) {
  if (Error error = checkDTypeNames(options))
    return std::move(error);
  auto targets = resolveTargets(options.targets);
  if (!targets)
    return targets.takeError();
  bool isOfGpu = stage == Stage::Kgpu || stage == Stage::Gpu || stage == Stage::Nvvm || stage == Stage::Ptx ||
                 stage == Stage::Sass;
  bool isForGpu = isOfGpu || (targets->cpus.empty() && !targets->tpu && targets->hasGpu());
  auto program = checkedProgram(options, isForGpu ? "gpu" : "cpu", sources, diags);
  if (!program)
    return program.takeError();
  if (!*program)
    return std::nullopt;
  switch (stage) {
  case Stage::Tile:
    return emitTile(**program, sources, options);
  case Stage::Plan:
    return emitPlan(**program, sources);
  case Stage::Llvm:
    if (!isForGpu && targets->cpus.empty())
      return make_error<WrongUse>("--emit=llvm shows code of CPUs and GPUs, which the target tpu does not have");
    if (!isForGpu)
      return emitLlvm(**program, sources, *targets->cpus.front(), options);
    [[fallthrough]];
  case Stage::Kgpu:
  case Stage::Gpu:
  case Stage::Nvvm:
  case Stage::Ptx:
  case Stage::Sass:
    if (targets->chips.empty() && (targets->ptx.empty() || stage == Stage::Sass))
      return make_error<WrongUse>(
          "--emit=kgpu, gpu, nvvm, ptx and sass show GPU code: name a chip, such as --target sm_90a");
    return emitGpu(**program, sources, targets->chips.empty() ? targets->ptx.front() : targets->chips.front(), options,
                   stage);
  }
  llvm_unreachable("a stage without a printer");
}

/// Returns the result of `make`, or an error if it crashes.
template <typename Make> auto guarded(const CompileOptions &options, Make make) -> decltype(make()) {
  std::optional<decltype(make())> made;
  if (std::optional<std::string> failure = failureOf([&] { made.emplace(make()); }))
    return make_error<KernelRefused>(join(options.inputs, ", ") + ": " + *failure);
  return std::move(*made);
}

} // namespace

Expected<std::optional<std::string>> compile(const CompileOptions &options, SourceManager &sources,
                                             DiagnosticEngine &diags, const Progress &progress, const Remark &remark) {
  return guarded(options, [&] { return makePackage(options, sources, diags, progress, remark); });
}

void compileAlone(const CompileOptions &options, int kind, size_t number, const BeforeStage &beforeStage) {
  SourceManager sources;
  DiagnosticEngine diags;
  auto targets = resolveTargets(options.targets);
  if (!targets)
    return consumeError(targets.takeError());
  for (const BuildTargets &each : kindsOf(*targets)) {
    if (kindOf(each) != kind)
      continue;
    auto program = checkedProgram(options, nameOfKind(each), sources, diags);
    if (!program)
      return consumeError(program.takeError());
    if (*program)
      compileAlone(**program, sources, each, options, number, beforeStage);
  }
}

Expected<std::optional<std::string>> emit(const CompileOptions &options, Stage stage, SourceManager &sources,
                                          DiagnosticEngine &diags) {
  return guarded(options, [&] { return stageText(options, stage, sources, diags); });
}

Error check(const CompileOptions &options, SourceManager &sources, DiagnosticEngine &diags, const Remark &remark) {
  auto targets = resolveTargets(options.targets);
  if (!targets)
    return targets.takeError();
  std::vector<std::unique_ptr<Program>> programs;
  for (const BuildTargets &kind : kindsOf(*targets)) {
    auto program = checkedProgram(options, nameOfKind(kind), sources, diags);
    if (!program)
      return program.takeError();
    if (!*program)
      return Error::success();
    programs.push_back(std::move(*program));
  }
  remarkOnPrograms(programs, targets->notes, sources, remark);
  return Error::success();
}

std::vector<std::string> filesRead(const CompileOptions &options, const SourceManager &sources) {
  std::vector<std::string> files = sources.loadedPaths();
  append_range(files, findTuning(options.inputs));
  append_range(files, options.tuning);
  return files;
}

Error loadOnly(const CompileOptions &options, SourceManager &sources, DiagnosticEngine &diags) {
  auto targets = resolveTargets(options.targets);
  if (!targets)
    return targets.takeError();
  for (const BuildTargets &kind : kindsOf(*targets)) {
    auto program = loadedProgram(options, nameOfKind(kind), sources, diags);
    if (!program)
      return program.takeError();
  }
  return Error::success();
}

Expected<std::vector<TestRecord>> readTests(const CompileOptions &options, SourceManager &sources,
                                            DiagnosticEngine &diags) {
  auto targets = resolveTargets(options.targets);
  if (!targets)
    return targets.takeError();
  auto program = loadedProgram(options, nameOfKind(kindsOf(*targets).front()), sources, diags);
  if (!program)
    return program.takeError();
  return testsOf(**program);
}

} // namespace kpkg::compiler
