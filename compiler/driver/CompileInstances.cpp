// Compiles kernel instances to machine code, in parallel: each instance is a job, generated once and lowered for each
// target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/CompileInstances.h"
#include "compiler/codegen/activity/Activity.h"
#include "compiler/driver/CheckedTile.h"
#include "compiler/driver/CompileGpu.h"
#include "compiler/driver/CompileTpu.h"
#include "compiler/driver/DroppedHints.h"
#include "compiler/driver/Guard.h"
#include "compiler/driver/IrMessages.h"
#include "compiler/driver/LineTables.h"
#include "compiler/driver/SelectInstances.h"
#include "compiler/driver/Simplify.h"
#include "compiler/pack/Manifest.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "dialect/pipeline/Registration.h"
#include "dialect/tile/transforms/Cost.h"
#include "dialect/tile/transforms/Variants.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ThreadPool.h"
#include <map>
#include <mutex>

using namespace llvm;

namespace kpkg::compiler {

namespace {

using lower::cpu::CpuTarget;

/// Returns the simplified tile IR of all checked instances and their variants, for showing a stage.
mlir::OwningOpRef<mlir::ModuleOp> tileVariants(const Program &program, const SourceManager &sources,
                                               mlir::MLIRContext &context, tile::VariantKind kind,
                                               const CompileOptions &options) {
  std::vector<InstanceRef> refs = checkedInstances(program);
  restrictInstances(program, options, refs);
  auto module = simplifiedTile(program, sources, refs, context, options);
  if (module)
    makeVariants(*module, kind, options);
  return module;
}

/// Returns the tile IR of these instances, without variants. A later kpkg can compile it for another target.
Expected<std::string> writeTileBytecode(const Program &program, const SourceManager &sources,
                                        const std::vector<InstanceRef> &refs, const CompileOptions &options) {
  auto context = makeContext();
  IrMessages messages(*context);
  auto module = checkedTile(program, sources, refs, *context, options);
  if (!module)
    return createStringError("%s", messages.text().c_str());
  std::string bytes;
  raw_string_ostream stream(bytes);
  // Locations contain file names of the build machine, on which the package must not depend.
  mlir::PassManager passes(context.get());
  passes.addPass(mlir::createStripDebugInfoPass());
  if (failed(passes.run(*module)) ||
      failed(mlir::writeBytecodeToFile(*module, stream, mlir::BytecodeWriterConfig("kpkg"))))
    return createStringError("cannot write the kernels as bytecode: %s", messages.text().c_str());
  return bytes;
}

/// Returns the ptxas that a build for these targets uses; nothing if it does without.
Expected<std::optional<Ptxas>> ptxasFor(const BuildTargets &targets, std::vector<std::string> &notes) {
  if (!targets.hasGpu())
    return std::nullopt;
  auto found = Ptxas::find();
  if (found)
    return std::move(*found);
  Error error = found.takeError();
  if (!error.isA<NoPtxas>() && targets.areChipsNamed)
    return createStringError("no machine code for %s: %s; the target ptx needs no assembler",
                             join(targets.chips, ", ").c_str(), toString(std::move(error)).c_str());
  notes.push_back(toString(std::move(error)) + "; the package has PTX instead of machine code");
  return std::nullopt;
}

Role roleOf(const Program &program, ArrayRef<InstanceRef> refs, size_t i) {
  return {haveOthers(program, refs)[i], lastAlternatives(program, refs)[i], generalAlternatives(program, refs)[i],
          hasVectors(program, refs[i])};
}

} // namespace

void compileAlone(const Program &program, const SourceManager &sources, const BuildTargets &targets,
                  const CompileOptions &options, size_t number, const BeforeStage &beforeStage) {
  std::vector<std::string> notes;
  auto ptxas = ptxasFor(targets, notes);
  if (!ptxas)
    return consumeError(ptxas.takeError()); // such a build compiles nothing
  std::vector<InstanceRef> refs = selectedInstances(program, options, notes);
  ActivityScope activity(kindOf(targets), int(number), title(program, refs[number]));
  compileOne({program, sources, targets, *ptxas ? &**ptxas : nullptr, options, beforeStage}, refs[number],
             roleOf(program, refs, number));
}

Expected<CompiledInstances> compileInstances(const Program &program, const SourceManager &sources,
                                             const BuildTargets &targets, const CompileOptions &options,
                                             const Progress &progress) {
  CompiledInstances compiled;
  auto ptxas = ptxasFor(targets, compiled.notes);
  if (!ptxas)
    return ptxas.takeError();
  std::vector<InstanceRef> refs = selectedInstances(program, options, compiled.notes);
  std::vector<bool> others = haveOthers(program, refs), isLast = lastAlternatives(program, refs),
                    isGeneral = generalAlternatives(program, refs);
  const BeforeStage nobody;
  const Job job = {program, sources, targets, *ptxas ? &**ptxas : nullptr, options, nobody};
  std::vector<JobResult> results(refs.size());
  std::mutex progressMutex;
  size_t done = 0;
  {
    DefaultThreadPool pool(hardware_concurrency(options.jobs));
    for (size_t i = 0; i < refs.size(); ++i)
      pool.async([&, i] {
        Role role = {others[i], isLast[i], isGeneral[i], hasVectors(program, refs[i])};
        ActivityScope activity(kindOf(targets), int(i), title(program, refs[i]));
        if (auto failure = failureOf([&] { results[i] = compileOne(job, refs[i], role); }))
          results[i] = failedEverywhere(targets, *failure);
        if (progress) {
          std::lock_guard<std::mutex> lock(progressMutex);
          progress(++done, refs.size(), title(program, refs[i]));
        }
      });
    pool.wait();
  }
  for (const JobResult &result : results)
    if (!result.toolFailure.empty())
      return createStringError("%s", result.toolFailure.c_str());
  if (llvm::Error error = dropAlternatives(program, sources, refs, results))
    return std::move(error);

  for (size_t t = 0; t < targets.cpus.size(); ++t) {
    std::vector<HostObject> objects;
    for (JobResult &result : results)
      if (result.objects[t])
        objects.push_back(std::move(*result.objects[t]));
    if (objects.empty())
      continue; // a package of ops without launches
    auto linked = linkObjects(objects, *targets.cpus[t], options.lineTables);
    if (!linked)
      return linked.takeError();
    compiled.objects.push_back({hostSectionName(targets.cpus[t]->isa.str()), "host-object", std::move(*linked)});
  }
  std::vector<std::vector<VariantNote>> notes;
  for (JobResult &result : results) {
    append_range(compiled.instances, result.instances);
    std::move(result.gpuObjects.begin(), result.gpuObjects.end(), std::back_inserter(compiled.objects));
    notes.push_back(std::move(result.notes));
  }
  append_range(compiled.notes, notesOnVariants(program, sources, refs, notes));
  if (targets.tpu)
    if (Error error = addTpuPrograms(program, sources, refs, results, compiled))
      return std::move(error);
  append_range(compiled.notes, notesOnHints(program, sources, compiled.instances));
  StringSet<> unknown;
  for (auto [ref, result] : zip(refs, results))
    if (const std::string &kernel = program.kernels()[ref.kernel].name;
        !result.whyNoEstimate.empty() && unknown.insert(kernel).second)
      compiled.notes.push_back(
          "the cost model does not know how long `" + kernel +
          "` takes, so that calls without a row of a tuning table take the first of its alternatives: " +
          result.whyNoEstimate);
  auto bytecode = writeTileBytecode(program, sources, refs, options);
  if (!bytecode)
    return bytecode.takeError();
  compiled.tileBytecode = std::move(*bytecode);
  return compiled;
}

Expected<std::string> emitTile(const Program &program, const SourceManager &sources, const CompileOptions &options) {
  auto context = makeContext();
  IrMessages messages(*context);
  std::vector<InstanceRef> refs = checkedInstances(program);
  restrictInstances(program, options, refs);
  auto module = checkedTile(program, sources, refs, *context, options);
  if (!module)
    return createStringError("%s", messages.text().c_str());
  std::string text;
  raw_string_ostream stream(text);
  module->print(stream);
  return text;
}

Expected<std::string> emitLlvm(const Program &program, const SourceManager &sources, const CpuTarget &target,
                               const CompileOptions &options) {
  auto context = makeContext();
  IrMessages messages(*context);
  auto module = tileVariants(program, sources, *context, tile::VariantKind::Cpu, options);
  if (!module || failed(lower::cpu::lowerToLLVM(*module, target)))
    return createStringError("%s", messages.text().c_str());
  if (options.lineTables)
    addLineTables(*module, LineTableKind::Dwarf);
  return compileToLlvmText(*module, target, options.optLevel);
}

Expected<std::string> emitGpu(const Program &program, const SourceManager &sources, StringRef chip,
                              const CompileOptions &options, Stage stage) {
  auto context = makeContext();
  IrMessages messages(*context);
  auto module = tileVariants(program, sources, *context, tile::VariantKind::Gpu, options);
  if (!module)
    return createStringError("%s", messages.text().c_str());
  const CodeOptions codeOptions = codeOptionsOf(options);
  auto text =
      stage == Stage::Sass ? sassText(*module, chip, codeOptions) : stageText(*module, chip, codeOptions, stage);
  if (text)
    return text;
  std::string why = withReports(text.takeError(), messages);
  if (stage == Stage::Sass) // needs tools that may be absent
    return createStringError(why);
  return make_error<KernelRefused>(why);
}

} // namespace kpkg::compiler
