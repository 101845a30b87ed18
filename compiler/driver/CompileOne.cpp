// Compiles one kernel instance to machine code for each target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/CompileOne.h"
#include "compiler/codegen/activity/Activity.h"
#include "compiler/driver/CheckedTile.h"
#include "compiler/driver/CompileGpu.h"
#include "compiler/driver/CompileTpu.h"
#include "compiler/driver/DescribeInstance.h"
#include "compiler/driver/DroppedHints.h"
#include "compiler/driver/Guard.h"
#include "compiler/driver/LineTables.h"
#include "compiler/driver/Reproduce.h"
#include "compiler/driver/SelectInstances.h"
#include "compiler/driver/Simplify.h"
#include "compiler/pack/Manifest.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "dialect/pipeline/Registration.h"
#include "dialect/tile/transforms/Cost.h"
#include "dialect/tile/transforms/Variants.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace llvm;

namespace kpkg::compiler {

using lower::cpu::CpuTarget;

std::unique_ptr<mlir::MLIRContext> makeContext() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  lower::cpu::registerLoweringDialects(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

std::string withReports(Error error, const IrMessages &messages) {
  return toString(std::move(error)) + (messages.isEmpty() ? "" : "\n" + messages.text());
}

mlir::OwningOpRef<mlir::ModuleOp> simplifiedTile(const Program &program, const SourceManager &sources,
                                                 ArrayRef<InstanceRef> instances, mlir::MLIRContext &context,
                                                 const CompileOptions &options) {
  return simplified(checkedTile(program, sources, instances, context, options));
}

void makeVariants(mlir::ModuleOp module, tile::VariantKind kind, const CompileOptions &options) {
  tile::makeVariants(module, kind);
  if (options.fast)
    keepGeneralVariant(module);
}

namespace {

/// FLOPs per cycle of a core: most have two vector FMAs of float32 per cycle.
double flopsPerCycle(const CpuTarget &target) { return 2 * 2 * double(target.lanes()); }
/// Bytes per cycle that a core loads from the shared caches, on most CPUs.
constexpr double kHostBytesPerCycle = 16;

/// Adds the CPU code of one instance to `result`.
void compileForCpus(mlir::ModuleOp tile, const Job &job, InstanceRef instance, const IrMessages &messages,
                    JobResult &result) {
  const CompileOptions &options = job.options;
  mlir::OwningOpRef<mlir::ModuleOp> module = tile.clone();
  makeVariants(*module, tile::VariantKind::Cpu, options);
  std::map<std::string, PackedInstance> variants;
  for (auto kernel : module->getOps<tile::KernelOp>())
    variants[kernel.getSymName().str()] = describeInstance(kernel, job.program, instance);
  for (const CpuTarget *target : job.targets.cpus) {
    mlir::OwningOpRef<mlir::ModuleOp> lowered = module->clone();
    recordTarget(target->isa.str());
    if (job.beforeStage)
      job.beforeStage(reproducerForCpu(*lowered, *target, options));
    beginStep("lower-cpu", *lowered);
    if (failed(lower::cpu::lowerToLLVM(*lowered, *target))) {
      result.failures.push_back({target->isa.str(), messages.text(), messages.text()});
      result.objects.emplace_back();
      continue;
    }
    if (options.lineTables)
      addLineTables(*lowered, LineTableKind::Dwarf);
    beginStep("llvm", *lowered);
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

/// Erases the variants that other instances provide for all.
void eraseServed(mlir::ModuleOp variants, Role role) {
  SmallVector<tile::KernelOp> kernels(variants.getOps<tile::KernelOp>());
  if (none_of(kernels, [](tile::KernelOp kernel) { return isForVectors(*kernel.getVariant()); }))
    return; // there are only general variants
  for (tile::KernelOp kernel : kernels)
    if (isForVectors(*kernel.getVariant()) ? role.isGeneral && !role.hasVectors : !role.isGeneral)
      kernel.erase();
}

/// Adds the code of one variant to `result`.
void addCode(GpuCode code, tile::KernelOp kernel, const Job &job, InstanceRef instance, JobResult &result) {
  PackedInstance packed = describeInstance(kernel, job.program, instance);
  packed.target = code.target;
  packed.section = code.object.section;
  packed.launch = code.launch;
  packed.remarks = std::move(code.remarks);
  packed.isSlow = !code.remark.empty();
  if (code.sharedCoordinate)
    countByClusters(packed, kernel, *code.sharedCoordinate);
  if (packed.work) {
    packed.work->flopsPerCycle = code.flopsPerCycle;
    if (code.flopsPerCycleAlone != code.flopsPerCycle)
      packed.work->flopsPerCycleAlone = code.flopsPerCycleAlone;
    packed.work->bytesPerCycle = code.bytesPerCycle;
    packed.work->resident = code.resident;
  }
  packed.asserts = std::move(code.asserts);
  packed.prints = std::move(code.prints);
  result.instances.push_back(std::move(packed));
  result.gpuObjects.push_back(std::move(code.object));
}

/// Adds the GPU code of one instance. A specialised variant without a launch at full speed is left out. One variant
/// must remain for each chip.
void compileForGpus(mlir::ModuleOp tile, const Job &job, InstanceRef instance, Role role, const IrMessages &messages,
                    JobResult &result) {
  const auto &[program, sources, targets, ptxas, options, beforeStage] = job;
  if (!targets.hasGpu())
    return;
  const Others others = role.isLast ? Others::None : Others::Serve;
  CodeOptions codeOptions = codeOptionsOf(options);
  codeOptions.findsSpills |= options.explainedKernel == program.kernels()[instance.kernel].name;
  mlir::OwningOpRef<mlir::ModuleOp> module = tile.clone();
  tile::makeVariants(*module, tile::VariantKind::Gpu);
  eraseServed(*module, role);
  if (options.fast)
    keepGeneralVariant(*module);
  auto announce = [&](tile::KernelOp kernel, StringRef chip, const std::string &target) {
    recordTarget(target);
    if (job.beforeStage)
      job.beforeStage(reproducerForGpu(kernel, chip, codeOptions, job.ptxas != nullptr, others));
  };
  auto compileAll = [&](StringRef chip, std::string target, auto compileOne) {
    unsigned made = 0;
    std::vector<std::string> reasons; // each once: they are often equal for all variants
    std::vector<VariantNote> notes;
    for (auto kernel : module->getOps<tile::KernelOp>()) {
      std::string variant = kernel.getVariant().value_or("").str();
      announce(kernel, chip, variant.empty() ? target : target + " (variant " + variant + ")");
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
      addCode(std::move(*code), kernel, job, instance, result);
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
      entry->second = attemptOf(compileForChip(kernel, chip, *ptxas, codeOptions, SlowCode::Refuse, others));
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

} // namespace

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
  result.whyNotOnTpu = why;
  return result;
}

JobResult compileOne(const Job &job, InstanceRef instance, Role role) {
  const Program &program = job.program;
  JobResult result;
  auto context = makeContext();
  IrMessages messages(*context);
  auto module = checkedTile(program, job.sources, {instance}, *context, job.options);
  if (module && job.beforeStage)
    job.beforeStage(reproducerForSimplify(*module));
  module = simplified(std::move(module));
  if (!module)
    return failedEverywhere(job.targets, messages.text());
  if (role.hasOthers && program.kernels()[instance.kernel].isLeftToChoice)
    for (auto kernel : module->getOps<tile::KernelOp>())
      result.whyNoEstimate = tile::whyNoEstimate(kernel);
  compileForCpus(*module, job, instance, messages, result);
  compileForGpus(*module, job, instance, role, messages, result);
  if (job.targets.tpu)
    compileForTpus(*module, program, instance, result);
  return result;
}

} // namespace kpkg::compiler
