// Compiles kernel instances to machine code, in parallel: each instance is a job, generated once and lowered for each
// target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/CompileInstances.h"
#include "compiler/driver/CheckedTile.h"
#include "compiler/driver/CompileGpu.h"
#include "compiler/driver/DescribeInstance.h"
#include "compiler/driver/DropAlternatives.h"
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

std::unique_ptr<mlir::MLIRContext> makeContext() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  lower::cpu::registerLoweringDialects(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

/// Returns the error, followed by MLIR's reports if there are any.
std::string withReports(Error error, const IrMessages &messages) {
  return toString(std::move(error)) + (messages.isEmpty() ? "" : "\n" + messages.text());
}

/// Returns the simplified tile IR of one or more instances.
mlir::OwningOpRef<mlir::ModuleOp> simplifiedTile(const Program &program, const SourceManager &sources,
                                                 ArrayRef<InstanceRef> instances, mlir::MLIRContext &context,
                                                 const CompileOptions &options) {
  return simplified(checkedTile(program, sources, instances, context, options));
}

/// Makes the variants that a build with these options compiles.
void makeVariants(mlir::ModuleOp module, tile::VariantKind kind, const CompileOptions &options) {
  tile::makeVariants(module, kind);
  if (options.fast)
    keepGeneralVariant(module);
}

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

/// FLOPs per cycle of a core: most have two vector FMAs of float32 per cycle.
double flopsPerCycle(const CpuTarget &target) { return 2 * 2 * double(target.lanes()); }
/// Bytes per cycle that a core loads from the shared caches, on most CPUs.
constexpr double kHostBytesPerCycle = 16;

/// Adds the CPU code of one instance to `result`.
void compileForCpus(mlir::ModuleOp tile, const Program &program, InstanceRef instance,
                    ArrayRef<const CpuTarget *> targets, const CompileOptions &options, const IrMessages &messages,
                    JobResult &result) {
  mlir::OwningOpRef<mlir::ModuleOp> module = tile.clone();
  makeVariants(*module, tile::VariantKind::Cpu, options);
  std::map<std::string, PackedInstance> variants;
  for (auto kernel : module->getOps<tile::KernelOp>())
    variants[kernel.getSymName().str()] = describeInstance(kernel, program, instance);
  for (const CpuTarget *target : targets) {
    mlir::OwningOpRef<mlir::ModuleOp> lowered = module->clone();
    if (failed(lower::cpu::lowerToLLVM(*lowered, *target))) {
      result.failures.push_back({target->isa.str(), messages.text(), messages.text()});
      result.objects.emplace_back();
      continue;
    }
    if (options.lineTables)
      addLineTables(*lowered, LineTableKind::Dwarf);
    auto object = compileToObject(*lowered, *target, options.optLevel);
    if (!object) {
      std::string why = withReports(object.takeError(), messages);
      result.failures.push_back({target->isa.str(), why, why});
      result.objects.emplace_back();
      continue;
    }
    for (const HostKernel &kernel : object->kernels) {
      PackedInstance packed = variants.at(kernel.symbol);
      packed.target = target->isa.str();
      packed.section = hostSectionName(packed.target);
      packed.scratch = kernel.scratchBytes;
      packed.asserts = kernel.asserts;
      packed.prints = kernel.prints;
      if (packed.work) {
        packed.work->flopsPerCycle = flopsPerCycle(*target);
        packed.work->bytesPerCycle = kHostBytesPerCycle;
      }
      result.instances.push_back(std::move(packed));
    }
    result.objects.push_back(std::move(*object));
  }
}

/// Returns the manifest's name for PTX of a chip.
std::string ptxTarget(StringRef chip) { return "compute_" + chip.substr(StringRef("sm_").size()).str(); }

/// Divides an extent, or another formula, by a number, rounding up.
void divideUp(tile::CostFactor &factor, int64_t divisor) {
  if (factor.kind == tile::CostFactor::Kind::Count) {
    factor.steps.push_back({tile::TripCountStep::Kind::Constant, divisor});
    factor.steps.push_back({tile::TripCountStep::Kind::CeilDivide});
    return;
  }
  factor.size = std::max<int64_t>(factor.size, 1) * divisor;
  factor.kind = tile::CostFactor::Kind::Tiles;
}

/// Counts tiles by clusters. A cluster whose CTAs process tiles together along a coordinate counts as one tile for the
/// launch.
void countByClusters(PackedInstance &packed, tile::KernelOp kernel, unsigned coordinate) {
  tile::ForTilesOp loop;
  kernel.walk([&](tile::ForTilesOp op) { loop = op; });
  std::optional<tile::CostFactor> along = tile::countFactor(kernel, loop.getCounts()[coordinate]);
  for (tile::CostTerm &term : packed.tiles)
    if (auto factor = along ? find(term.factors, *along) : term.factors.end(); factor != term.factors.end())
      divideUp(*factor, packed.launch->cluster);
  if (packed.work)
    for (tile::CostTerm &term : packed.work->flops)
      term.count *= packed.launch->cluster;
}

/// The role of an instance among its alternatives.
struct Role {
  bool hasOthers;  ///< there are several alternatives
  bool isLast;     ///< no later alternative can replace it
  bool isGeneral;  ///< it has the variants that the others lack
  bool hasVectors; ///< it has vectorised variants
};

/// Erases the variants that other instances provide for all.
void eraseServed(mlir::ModuleOp variants, Role role) {
  SmallVector<tile::KernelOp> kernels(variants.getOps<tile::KernelOp>());
  if (none_of(kernels, [](tile::KernelOp kernel) { return isForVectors(*kernel.getVariant()); }))
    return; // there are only general variants
  for (tile::KernelOp kernel : kernels)
    if (isForVectors(*kernel.getVariant()) ? role.isGeneral && !role.hasVectors : !role.isGeneral)
      kernel.erase();
}

/// Adds the GPU code of one instance. A specialised variant without a launch at full speed is left out. One variant
/// must remain for each chip.
void compileForGpus(mlir::ModuleOp tile, const Program &program, InstanceRef instance, const BuildTargets &targets,
                    const Ptxas *ptxas, const CompileOptions &options, Role role, const IrMessages &messages,
                    JobResult &result) {
  if (!targets.hasGpu())
    return;
  CodeOptions codeOptions = codeOptionsOf(options);
  codeOptions.findsSpills |= options.explainedKernel == program.kernels()[instance.kernel].name;
  mlir::OwningOpRef<mlir::ModuleOp> module = tile.clone();
  tile::makeVariants(*module, tile::VariantKind::Gpu);
  eraseServed(*module, role);
  if (options.fast)
    keepGeneralVariant(*module);
  auto compileAll = [&](StringRef chip, std::string target, auto compileOne) {
    unsigned made = 0;
    std::vector<std::string> reasons; // each once: they are often equal for all variants
    std::vector<VariantNote> notes;
    for (auto kernel : module->getOps<tile::KernelOp>()) {
      std::string variant = kernel.getVariant().value_or("").str();
      GpuAttempt attempt = compileOne(kernel, chip);
      std::optional<GpuCode> &code = attempt.code;
      if (!code) {
        if (attempt.isToolAtFault)
          result.toolFailure = attempt.why;
        notes.push_back({VariantNote::LeftOut, target, variant, attempt.brief});
        if (!is_contained(reasons, attempt.why))
          reasons.push_back(std::move(attempt.why));
        continue;
      }
      ++made;
      if (!code->remark.empty())
        notes.push_back({VariantNote::Slow, target, variant, code->remark});
      PackedInstance packed = describeInstance(kernel, program, instance);
      packed.target = code->target;
      packed.section = code->object.section;
      packed.launch = code->launch;
      packed.remarks = std::move(code->remarks);
      packed.isSlow = !code->remark.empty();
      if (code->sharedCoordinate)
        countByClusters(packed, kernel, *code->sharedCoordinate);
      if (packed.work) {
        packed.work->flopsPerCycle = code->flopsPerCycle;
        if (code->flopsPerCycleAlone != code->flopsPerCycle)
          packed.work->flopsPerCycleAlone = code->flopsPerCycleAlone;
        packed.work->bytesPerCycle = code->bytesPerCycle;
        packed.work->resident = code->resident;
      }
      packed.asserts = std::move(code->asserts);
      packed.prints = std::move(code->prints);
      result.instances.push_back(std::move(packed));
      result.gpuObjects.push_back(std::move(code->object));
    }
    if (made == 0)
      result.failures.push_back({std::move(target), join(reasons, "\n") + (messages.isEmpty() ? "" : messages.text()),
                                 notes.empty() ? messages.text() : notes.front().why});
    else
      append_range(result.notes, notes);
  };
  // Packages often have machine code and PTX for the same chip, which is compiled once.
  std::map<std::pair<std::string, std::string>, GpuAttempt> done;
  auto compileFor = [&](tile::KernelOp kernel, StringRef chip) -> const GpuAttempt & {
    auto [entry, isNew] = done.try_emplace({chip.str(), kernel.getSymName().str()});
    if (isNew)
      entry->second = attemptOf(compileForChip(kernel, chip, *ptxas, codeOptions, SlowCode::Refuse,
                                               role.isLast ? Others::None : Others::Serve));
    return entry->second;
  };
  for (const std::string &chip : targets.chips)
    compileAll(chip, chip, [&](tile::KernelOp kernel, StringRef name) {
      return ptxas ? compileFor(kernel, name) : attemptOf(compileToPackedPtx(kernel, name, codeOptions));
    });
  for (const std::string &chip : targets.ptx)
    compileAll(chip, ptxTarget(chip), [&](tile::KernelOp kernel, StringRef name) {
      if (!ptxas)
        return attemptOf(compileToPackedPtx(kernel, name, codeOptions));
      GpuAttempt attempt = compileFor(kernel, name);
      if (attempt.code)
        attempt.code = asPackedPtx(*attempt.code, name, kernel.getSymName());
      return attempt;
    });
}

/// Returns the result of an instance without code for any target.
JobResult failedEverywhere(const BuildTargets &targets, const std::string &why) {
  JobResult result;
  for (const CpuTarget *target : targets.cpus) {
    result.failures.push_back({target->isa.str(), why, why});
    result.objects.emplace_back();
  }
  for (const std::string &chip : targets.chips)
    result.failures.push_back({chip, why, why});
  for (const std::string &chip : targets.ptx)
    result.failures.push_back({ptxTarget(chip), why, why});
  return result;
}

JobResult compileOne(const Program &program, const SourceManager &sources, InstanceRef instance,
                     const BuildTargets &targets, const Ptxas *ptxas, const CompileOptions &options, Role role) {
  JobResult result;
  auto context = makeContext();
  IrMessages messages(*context);
  auto module = simplifiedTile(program, sources, {instance}, *context, options);
  if (!module)
    return failedEverywhere(targets, messages.text());
  if (role.hasOthers && program.kernels()[instance.kernel].isLeftToChoice)
    for (auto kernel : module->getOps<tile::KernelOp>())
      result.whyNoEstimate = tile::whyNoEstimate(kernel);
  compileForCpus(*module, program, instance, targets.cpus, options, messages, result);
  compileForGpus(*module, program, instance, targets, ptxas, options, role, messages, result);
  return result;
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

} // namespace

Expected<CompiledInstances> compileInstances(const Program &program, const SourceManager &sources,
                                             const BuildTargets &targets, const CompileOptions &options,
                                             const Progress &progress) {
  CompiledInstances compiled;
  std::optional<Ptxas> ptxas;
  if (targets.hasGpu()) {
    auto found = Ptxas::find();
    if (found)
      ptxas = std::move(*found);
    else if (Error error = found.takeError(); !error.isA<NoPtxas>() && targets.areChipsNamed)
      return createStringError("no machine code for %s: %s; the target ptx needs no assembler",
                               join(targets.chips, ", ").c_str(), toString(std::move(error)).c_str());
    else
      compiled.notes.push_back(toString(std::move(error)) + "; the package has PTX instead of machine code");
  }
  std::vector<InstanceRef> refs = selectedInstances(program, options, compiled.notes);
  std::vector<bool> others = haveOthers(program, refs), isLast = lastAlternatives(program, refs),
                    isGeneral = generalAlternatives(program, refs);
  std::vector<JobResult> results(refs.size());
  std::mutex progressMutex;
  size_t done = 0;
  {
    DefaultThreadPool pool(hardware_concurrency(options.jobs));
    for (size_t i = 0; i < refs.size(); ++i)
      pool.async([&, i] {
        Role role = {others[i], isLast[i], isGeneral[i], hasVectors(program, refs[i])};
        if (auto failure = failureOf([&] {
              results[i] = compileOne(program, sources, refs[i], targets, ptxas ? &*ptxas : nullptr, options, role);
            }))
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
