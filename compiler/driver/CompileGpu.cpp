// Compiles kernel variants to machine code and PTX for GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/CompileGpu.h"
#include "compiler/codegen/nvptx/Disassemble.h"
#include "compiler/codegen/nvptx/Ptx.h"
#include "compiler/codegen/nvptx/Tool.h"
#include "compiler/driver/Guard.h"
#include "compiler/driver/LineTables.h"
#include "compiler/driver/LocalMemoryReport.h"
#include "compiler/driver/RemarkLog.h"
#include "compiler/driver/TensorMapRecords.h"
#include "dialect/kgpu/analysis/ClusterTiles.h"
#include "dialect/kgpu/analysis/Throughput.h"
#include "dialect/kgpu/launch/Candidates.h"
#include "dialect/kgpu/launch/Hints.h"
#include "dialect/lower/nvvm/LowerNvvm.h"
#include "dialect/pipeline/GpuPipeline.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace kpkg::compiler {

char NoFastLaunch::ID = 0;

namespace {

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

/// Returns a module with a copy of `kernel`, laid out for `chip` and this launch; null after an error in the
/// diagnostics.
Module layOut(tile::KernelOp kernel, StringRef chip, const kgpu::Launch &launch) {
  Module module = mlir::ModuleOp::create(kernel.getLoc());
  tile::KernelOp copy = kernel.clone();
  kgpu::setLaunch(copy, launch);
  module->push_back(copy);
  mlir::PassManager passes(kernel.getContext());
  tracePasses(passes);
  buildGpuPipeline(passes, chip);
  return failed(passes.run(*module)) ? Module() : std::move(module);
}

/// Returns the most promising launch, for code that ptxas does not see here.
kgpu::Launch firstLaunch(tile::KernelOp kernel, StringRef chip) {
  return kgpu::candidates(kernel, *kgpu::findTarget(chip)).front();
}

struct Compiled {
  kgpu::Launch launch;
  bool hasRings = false;
  std::vector<manifest::TensorMap> tensorMaps;
  lower::nvvm::ReportTexts reports;
  std::vector<PackedRemark> remarks;
  std::string ptx;
};

/// Returns the PTX of a lowered module.
Expected<std::string> ptxOf(mlir::Operation *gpuModule, StringRef chip, CodeOptions options) {
  if (!options.lineTables)
    return compileToPtx(gpuModule, chip, options.optLevel);
  addLineTables(gpuModule, LineTableKind::Directives);
  auto ptx = compileToPtx(gpuModule, chip, options.optLevel);
  return ptx ? withFixedFileTimes(*ptx) : std::move(ptx);
}

Expected<Compiled> compileLaunch(tile::KernelOp kernel, StringRef chip, const kgpu::Launch &launch,
                                 CodeOptions options) {
  RemarkLog log(*kernel.getContext());
  Module module = layOut(kernel, chip, launch);
  if (!module)
    return createStringError("the kernel cannot be laid out for %s", chip.str().c_str());
  Compiled compiled;
  compiled.remarks = log.take();
  tile::KernelOp laidOut = *module->getOps<tile::KernelOp>().begin();
  compiled.launch = kgpu::getLaunch(laidOut);
  compiled.hasRings = kgpu::hasRings(laidOut);
  compiled.tensorMaps = tensorMapRecords(laidOut);
  compiled.reports = lower::nvvm::reportTexts(laidOut);
  beginStep("lower-nvvm", *module);
  if (failed(lower::nvvm::lowerToNvvm(*module)))
    return createStringError("the kernel cannot be lowered for %s", chip.str().c_str());
  beginStep("llvm", *module);
  auto ptx = ptxOf(*module->getOps<mlir::gpu::GPUModuleOp>().begin(), chip, options);
  if (!ptx)
    return ptx.takeError();
  compiled.ptx = std::move(*ptx);
  return compiled;
}

unsigned occupancyOf(tile::KernelOp kernel, const kgpu::Launch &launch, const kgpu::TargetModel &model,
                     unsigned registers) {
  if (!launch.persistent && !kernel.isPersistent())
    return 0;
  return std::max(1u, model.residentCtas(launch.threads, registers, launch.shared));
}

/// Describes a launch for the package. `report` is the report of ptxas; null if ptxas was not run.
manifest::Launch packed(tile::KernelOp kernel, StringRef chip, const Compiled &compiled, const KernelReport *report) {
  const kgpu::Launch &launch = compiled.launch;
  manifest::Launch result;
  result.tensorMaps = compiled.tensorMaps;
  result.threads = launch.threads;
  result.blocks = launch.blocks;
  result.cluster = launch.cluster;
  result.shared = uint32_t(launch.shared);
  result.registers = report ? report->registers : 0;
  result.spills = report ? report->spillStores : 0;
  const kgpu::TargetModel &model = *kgpu::findTarget(chip);
  result.occupancy = occupancyOf(kernel, launch, model, result.registers);
  result.overlaps = launch.overlaps;
  result.counters = launch.dynamic ? unsigned(kgpu::kCounters) : 0;
  return result;
}

/// A rejected launch.
struct Refused {
  kgpu::Launch launch;
  std::string why;
};

struct Choice {
  Compiled compiled;
  Cubin cubin;
  std::string remark;
  kgpu::Launch asked;           ///< the launch before the kernel was laid out
  std::vector<Refused> refused; ///< rejected before it
};

/// Describes a launch: "384 threads, 2 blocks on a multiprocessor, two roles".
std::string describe(const kgpu::Launch &launch) {
  std::string text = std::to_string(launch.threads) + " threads";
  if (launch.cluster > 1)
    text += ", clusters of " + std::to_string(launch.cluster);
  if (launch.minCtas > 1)
    text += ", " + std::to_string(launch.minCtas) + " blocks on a multiprocessor";
  if (launch.peels)
    text += ", split loops";
  if (launch.producers)
    text += ", three roles";
  else if (launch.consumers)
    text += ", two roles";
  if (launch.loadRegisters)
    text += ", " + std::to_string(launch.loadRegisters) + " registers for loads";
  return text;
}

/// Returns a complaint of the lint about one kernel, without the kernel's symbol.
std::string withoutSymbol(std::string why, StringRef symbol) {
  auto replaceAll = [&](const std::string &from, StringRef to) {
    for (size_t at = why.find(from); at != std::string::npos; at = why.find(from, at + to.size()))
      why.replace(at, from.size(), to);
  };
  replaceAll(symbol.str() + " ", "");
  replaceAll(symbol.str(), "the kernel");
  return why;
}

/// Records the hints that the code does not follow, and rejected launches. `asked` is the launch before the kernel was
/// laid out.
void addDropped(manifest::Launch &packed, tile::KernelOp kernel, StringRef chip, const Compiled &compiled,
                const kgpu::Launch &asked, unsigned resident, std::vector<Refused> refused) {
  for (Refused &one : refused)
    one.why = withoutSymbol(std::move(one.why), kernel.getSymName());
  const kgpu::TargetModel &target = *kgpu::findTarget(chip);
  for (kgpu::DroppedHint &hint : kgpu::droppedHints(kernel, target, {compiled.launch, compiled.hasRings, resident})) {
    auto asking =
        find_if(refused, [&](const Refused &one) { return kgpu::asksFor(one.launch, kernel, target, hint.hint); });
    bool wasTried = asking != refused.end() && !kgpu::asksFor(asked, kernel, target, hint.hint);
    packed.dropped.push_back({(StringRef(tile::nameOf(hint.hint)) + "=" + Twine(hint.value)).str(),
                              wasTried ? asking->why : hint.why, wasTried || hint.isForWantOfRoom});
  }
  for (const Refused &one : refused)
    packed.refused.push_back(
        {describe(one.launch), one.why, one.launch.consumers != 0 && compiled.launch.consumers == 0});
}

/// Returns whether a variant accepts arguments that the faster variants do not, so that it must exist.
bool isGeneral(tile::KernelOp kernel) { return kernel.getVariant() == "any" || kernel.getVariant() == "unit"; }

/// Returns the effort of ptxas. -O3 takes a third longer for warp-level products, and gives equal code for other
/// kernels. On an H200, -O3 makes products of single elements (`unit`, `any`) 7 % faster, but not vectorised ones.
Ptxas::Effort effortFor(tile::KernelOp kernel, unsigned optLevel) {
  if (optLevel == 0)
    return Ptxas::Effort::Least;
  return kernel.getVariant() == "vector64" ? Ptxas::Effort::Less : Ptxas::Effort::Most;
}

/// Reports which lines of the source use local memory in `code`. Without a line table it is compiled again with one.
LocalMemoryReport localMemoryOf(tile::KernelOp kernel, StringRef chip, const Ptxas &ptxas, CodeOptions options,
                                const kgpu::Launch &launch, const Cubin &code) {
  const KernelReport *report = code.report.find(kernel.getSymName());
  if (!options.findsSpills || !report || !usesLocalMemory(*report))
    return {};
  if (options.lineTables)
    return reportLocalMemory(*report, code);
  options.lineTables = true;
  auto compiled = compileLaunch(kernel, chip, launch, options);
  return reportLocalMemory(*report, compiled ? ptxas.assemble(compiled->ptx, chip, effortFor(kernel, options.optLevel))
                                             : compiled.takeError());
}

/// For a launch that can fail for lack of space, returns the number of the next launch with the same roles that follows
/// fewer hints.
std::optional<unsigned> withoutHint(tile::KernelOp kernel, const kgpu::TargetModel &target,
                                    ArrayRef<kgpu::Launch> launches, unsigned number) {
  const kgpu::Launch &asking = launches[number];
  for (unsigned other = number + 1; other < launches.size(); ++other)
    if ((launches[other].consumers != 0) == (asking.consumers != 0) &&
        any_of(tile::kHints, [&](const tile::HintRecord &record) {
          return kgpu::asksFor(asking, kernel, target, record.hint) &&
                 !kgpu::asksFor(launches[other], kernel, target, record.hint);
        }))
      return other;
  return std::nullopt;
}

/// Collects the first error of its lifetime, without its place.
struct FirstError {
  /// If `keeps` is set, other handlers do not receive the errors.
  FirstError(mlir::MLIRContext *context, bool keeps)
      : handler(context, [this, keeps](mlir::Diagnostic &diagnostic) {
          if (!keeps)
            return mlir::failure();
          if (text.empty() && diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            text = diagnostic.str();
          return mlir::success();
        }) {}
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

/// Returns the first candidate without complaints of ptxas.
Expected<Choice> choose(tile::KernelOp kernel, StringRef chip, const Ptxas &ptxas, CodeOptions options, SlowCode slow,
                        Others others) {
  if (others == Others::Serve && kgpu::leavesFewRegisters(kernel, *kgpu::findTarget(chip)))
    return createStringError("the accumulators of its products leave too few registers for operands");
  if (others == Others::Serve && kgpu::multipliesBytesByWarps(kernel, *kgpu::findTarget(chip)))
    return createStringError(
        "warpgroups multiply 8-bit elements only where they are contiguous along what is summed over");
  // Without alternatives these are wishes, for the chips and variants that support them.
  for (auto *whyNot : {kgpu::whyNoCluster, kgpu::whyNotDynamic})
    if (std::optional<std::string> why =
            others == Others::Serve ? whyNot(kernel, *kgpu::findTarget(chip)) : std::nullopt)
      return createStringError(*why);
  SmallVector<kgpu::Launch> launches = kgpu::candidates(kernel, *kgpu::findTarget(chip));
  std::optional<kgpu::Launch> shortest =
      options.shortestCode ? kgpu::shortestLaunch(kernel, *kgpu::findTarget(chip)) : std::nullopt;
  if (shortest)
    launches.insert(launches.begin(), *shortest);
  auto hasRoles = [](const kgpu::Launch &launch) { return launch.consumers != 0; };
  bool onlyRoles = others == Others::Serve && any_of(launches, hasRoles);
  std::vector<Refused> refused;
  size_t numberOfLightest = 0; // among the rejected launches
  std::optional<Choice> lightest;
  unsigned fewest = std::numeric_limits<unsigned>::max();
  for (unsigned candidate = 0; candidate < launches.size(); ++candidate) {
    if (onlyRoles && !hasRoles(launches[candidate]))
      continue;
    std::optional<unsigned> next =
        others == Others::None ? withoutHint(kernel, *kgpu::findTarget(chip), launches, candidate) : std::nullopt;
    if (shortest && candidate == 0)
      next = 1;
    FirstError why(kernel.getContext(), /*keeps=*/next.has_value());
    auto compiled = compileLaunch(kernel, chip, launches[candidate], options);
    if (!compiled && next &&
        !why.text.empty()) { // a hint without enough space is a wish, like hints that make registers spill
      consumeError(compiled.takeError());
      refused.push_back({launches[candidate], why.text});
      candidate = *next - 1;
      continue;
    }
    if (!compiled)
      return compiled.takeError();
    auto cubin = ptxas.assemble(compiled->ptx, chip, effortFor(kernel, options.optLevel));
    if (!cubin)
      return cubin.takeError();
    // Without optimisation, build time matters more than the code.
    std::vector<std::string> complaints = options.optLevel == 0 ? std::vector<std::string>() : lint(cubin->report);
    LocalMemoryReport lines = localMemoryOf(kernel, chip, ptxas, options, launches[candidate], *cubin);
    append_range(compiled->remarks, lines.remarks);
    if (complaints.empty())
      return Choice{std::move(*compiled), std::move(*cubin), {}, launches[candidate], std::move(refused)};
    complaints.front() += lines.text;
    std::optional<unsigned> local = localBytes(cubin->report);
    if ((isGeneral(kernel) || slow == SlowCode::Accept) && local && *local < fewest) {
      fewest = *local;
      numberOfLightest = refused.size();
      lightest = Choice{std::move(*compiled),
                        std::move(*cubin),
                        withoutSymbol(join(complaints, "; "), kernel.getSymName()),
                        launches[candidate],
                        {}};
    }
    refused.push_back({launches[candidate], join(complaints, "; ")});
  }
  if (lightest) {
    refused.erase(refused.begin() + numberOfLightest);
    lightest->refused = std::move(refused);
    return std::move(*lightest);
  }
  std::string findings;
  for (const Refused &one : refused)
    findings += "\n  with " + std::to_string(one.launch.threads) + " threads: " + one.why;
  return make_error<NoFastLaunch>(
      ("no launch of " + kernel.getSymName() + " runs at full speed on " + chip + ":" + findings).str(),
      refused.empty() ? "" : withoutSymbol(refused.back().why, kernel.getSymName()));
}

void addReports(GpuCode &code, lower::nvvm::ReportTexts &reports) {
  code.asserts = std::move(reports.asserts);
  code.prints = std::move(reports.prints);
}

} // namespace

/// Adds the rates of a machine that the cost model needs at run time.
static void addRates(GpuCode &code, tile::KernelOp kernel, StringRef chip, const kgpu::Launch &launch) {
  const kgpu::TargetModel &model = *kgpu::findTarget(chip);
  kgpu::Throughput most = kgpu::throughput(kernel, model, launch);
  code.flopsPerCycle = most.flops;
  code.flopsPerCycleAlone = most.alone;
  code.bytesPerCycle = most.bytes;
  code.resident = std::max(1u, model.residentCtas(code.launch.threads, code.launch.registers, code.launch.shared));
}

Expected<GpuCode> compileForChip(tile::KernelOp kernel, StringRef chip, const Ptxas &ptxas, CodeOptions options,
                                 SlowCode slow, Others others) {
  auto chosen = choose(kernel, chip, ptxas, options, slow, others);
  if (!chosen)
    return chosen.takeError();
  auto &[compiled, cubin, remark, asked, refused] = *chosen;
  GpuCode code;
  code.remark = std::move(remark);
  code.target = chip.str();
  addReports(code, compiled.reports);
  code.remarks = std::move(compiled.remarks);
  code.launch = packed(kernel, chip, compiled, cubin.report.find(kernel.getSymName()));
  addRates(code, kernel, chip, compiled.launch);
  if (!options.shortestCode) // which follows no hint
    addDropped(code.launch, kernel, chip, compiled, asked, code.resident, std::move(refused));
  if (compiled.launch.consumers)
    code.sharedCoordinate = kgpu::clusterCoordinate(kernel, *kgpu::findTarget(chip), compiled.launch.cluster);
  code.object = {"cubin/" + chip.str() + "/" + kernel.getSymName().str(), "cubin", std::move(cubin.bytes)};
  code.ptx = std::move(compiled.ptx);
  return code;
}

GpuAttempt attemptOf(Expected<GpuCode> made) {
  GpuAttempt attempt;
  if (made) {
    attempt.code = std::move(*made);
    return attempt;
  }
  handleAllErrors(made.takeError(), [&](const ErrorInfoBase &error) {
    attempt.why = error.message();
    attempt.isToolAtFault = error.isA<ToolFailed>();
    attempt.brief = error.isA<NoFastLaunch>() ? static_cast<const NoFastLaunch &>(error).brief : attempt.why;
  });
  return attempt;
}

static std::string ptxSection(StringRef chip, StringRef symbol) { return ("ptx/" + chip + "/" + symbol).str(); }
static std::string ptxTarget(StringRef chip) { return ("compute_" + chip.substr(StringRef("sm_").size())).str(); }

GpuCode asPackedPtx(const GpuCode &code, StringRef chip, StringRef symbol) {
  GpuCode result = code;
  result.target = ptxTarget(chip);
  result.object = {ptxSection(chip, symbol), "ptx", std::move(result.ptx)};
  result.ptx.clear();
  return result;
}

Expected<GpuCode> compileToPackedPtx(tile::KernelOp kernel, StringRef chip, CodeOptions options) {
  GpuCode code;
  code.target = ptxTarget(chip);
  auto compiled = compileLaunch(kernel, chip, firstLaunch(kernel, chip), options);
  if (!compiled)
    return compiled.takeError();
  code.remarks = std::move(compiled->remarks);
  code.launch = packed(kernel, chip, *compiled, nullptr);
  addReports(code, compiled->reports);
  addRates(code, kernel, chip, compiled->launch);
  addDropped(code.launch, kernel, chip, *compiled, compiled->launch, code.resident, {});
  if (compiled->launch.consumers)
    code.sharedCoordinate = kgpu::clusterCoordinate(kernel, *kgpu::findTarget(chip), compiled->launch.cluster);
  code.object = {ptxSection(chip, kernel.getSymName()), "ptx", std::move(compiled->ptx)};
  return code;
}

/// Returns one kernel as text at a stage before machine code.
static Expected<std::string> stageOfKernel(tile::KernelOp kernel, StringRef chip, CodeOptions options, Stage stage) {
  Module module = layOut(kernel, chip, firstLaunch(kernel, chip));
  std::string symbol = kernel.getSymName().str();
  if (!module)
    return createStringError("%s cannot be laid out for %s", symbol.c_str(), chip.str().c_str());
  if (stage == Stage::Gpu && failed(lower::nvvm::lowerToGpu(*module)))
    return createStringError("%s cannot be lowered to the GPU dialect for %s", symbol.c_str(), chip.str().c_str());
  bool isBehindNvvm = stage == Stage::Nvvm || stage == Stage::Llvm || stage == Stage::Ptx;
  if (isBehindNvvm && failed(lower::nvvm::lowerToNvvm(*module)))
    return createStringError("%s cannot be lowered to the NVVM dialect for %s", symbol.c_str(), chip.str().c_str());
  if (stage == Stage::Llvm || stage == Stage::Ptx) {
    mlir::Operation *gpuModule = *module->getOps<mlir::gpu::GPUModuleOp>().begin();
    if (stage == Stage::Ptx)
      return ptxOf(gpuModule, chip, options);
    if (options.lineTables)
      addLineTables(gpuModule, LineTableKind::Directives);
    return compileToNvptxLlvmText(gpuModule, chip, options.optLevel);
  }
  std::string text;
  raw_string_ostream stream(text);
  module->print(stream);
  return text;
}

Expected<std::string> stageText(mlir::ModuleOp variants, StringRef chip, CodeOptions options, Stage stage) {
  const StringRef comment = stage == Stage::Llvm ? "; " : "// ";
  std::string text;
  std::vector<std::string> refused;
  bool hasCode = false;
  for (auto kernel : variants.getOps<tile::KernelOp>()) {
    auto ofKernel = stageOfKernel(kernel, chip, options, stage);
    hasCode |= bool(ofKernel);
    if (!ofKernel)
      refused.push_back(llvm::toString(ofKernel.takeError()));
    text += ofKernel ? *ofKernel : (comment + refused.back() + "\n").str();
  }
  if (!hasCode && !refused.empty())
    return createStringError(llvm::join(refused, "\n"));
  return text;
}

Expected<std::string> sassText(mlir::ModuleOp variants, StringRef chip, CodeOptions options) {
  auto ptxas = Ptxas::find();
  if (!ptxas)
    return ptxas.takeError();
  std::string text;
  for (auto kernel : variants.getOps<tile::KernelOp>()) {
    auto code = compileForChip(kernel, chip, *ptxas, options);
    if (!code)
      return code.takeError();
    auto sass = disassemble(code->object.bytes);
    if (!sass)
      return sass.takeError();
    text += *sass;
  }
  return text;
}

} // namespace kpkg::compiler
