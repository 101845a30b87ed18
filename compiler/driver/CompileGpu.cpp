// Kernel variants to machine code and PTX for GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/CompileGpu.h"
#include "compiler/codegen/nvptx/Disassemble.h"
#include "compiler/codegen/nvptx/Ptx.h"
#include "dialect/kgpu/schedule/Candidates.h"
#include "dialect/kgpu/schedule/ClusterTiles.h"
#include "dialect/kgpu/schedule/Throughput.h"
#include "dialect/lower/nvvm/LowerNvvm.h"
#include "dialect/pipeline/GpuPipeline.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

/// A module with a copy of `kernel`, laid out for `chip`; null after an error in the diagnostics.
Module layOut(tile::KernelOp kernel, StringRef chip, unsigned candidate) {
  Module module = mlir::ModuleOp::create(kernel.getLoc());
  module->push_back(kernel->clone());
  mlir::PassManager passes(kernel.getContext());
  buildGpuPipeline(passes, chip, candidate);
  return failed(passes.run(*module)) ? Module() : std::move(module);
}

struct Compiled {
  kgpu::Launch launch;
  std::vector<PackedTensorMap> tensorMaps;
  lower::nvvm::ReportTexts reports;
  std::string ptx;
};

std::optional<PackedWindow> packedWindow(kgpu::WindowAttr window) {
  if (!window)
    return std::nullopt;
  PackedWindow result{window.getCounts().vec(), window.getStrides().vec(), window.getStarts().vec(), window.getSteps().vec(), {}};
  for (size_t i = 0; i < window.getTaps().size(); i += 2)
    result.taps.emplace_back(window.getTaps()[i], window.getTaps()[i + 1]);
  return result;
}

std::vector<PackedTensorMap> tensorMaps(tile::KernelOp laidOut) {
  std::vector<PackedTensorMap> packed;
  for (kgpu::TensorMapAttr map : kgpu::tensorMapsOf(laidOut)) {
    auto view = mlir::cast<tile::ViewType>(laidOut.getArgumentTypes()[map.getArg()]);
    packed.push_back({map.getArg(), map.getBox().vec(), map.getSwizzle(), unsigned(view.getUnit()), 0, 1, packedWindow(map.getWindow())});
  }
  laidOut.walk([&](kgpu::TensorLoadOp load) {
    PackedTensorMap &map = packed[load.getMap()];
    ++map.copies;
    map.sharedBy = load.getMulticast() ? kgpu::getLaunch(laidOut).cluster : 1;
  });
  return packed;
}

Expected<Compiled> compileCandidate(tile::KernelOp kernel, StringRef chip, unsigned candidate, unsigned optLevel) {
  Module module = layOut(kernel, chip, candidate);
  if (!module)
    return createStringError("the kernel cannot be laid out for %s", chip.str().c_str());
  Compiled compiled;
  tile::KernelOp laidOut = *module->getOps<tile::KernelOp>().begin();
  compiled.launch = kgpu::getLaunch(laidOut);
  compiled.tensorMaps = tensorMaps(laidOut);
  compiled.reports = lower::nvvm::reportTexts(laidOut);
  if (failed(lower::nvvm::lowerToNvvm(*module)))
    return createStringError("the kernel cannot be lowered for %s", chip.str().c_str());
  auto ptx = compileToPtx(*module->getOps<mlir::gpu::GPUModuleOp>().begin(), chip, optLevel);
  if (!ptx)
    return ptx.takeError();
  compiled.ptx = std::move(*ptx);
  return compiled;
}

unsigned occupancyOf(tile::KernelOp kernel, const kgpu::Launch &launch, const kgpu::TargetModel &model, unsigned registers) {
  if (!launch.persistent && !kernel.isPersistent())
    return 0;
  return std::max(1u, model.residentCtas(launch.threads, registers, launch.shared));
}

/// `report`: what ptxas said; null where it was not asked.
PackedLaunch packed(tile::KernelOp kernel, StringRef chip, const Compiled &compiled, const KernelReport *report) {
  const kgpu::Launch &launch = compiled.launch;
  PackedLaunch result;
  result.tensorMaps = compiled.tensorMaps;
  result.threads = launch.threads;
  result.blocks = launch.blocks;
  result.cluster = launch.cluster;
  result.shared = launch.shared;
  result.registers = report ? report->registers : 0;
  result.spills = report ? report->spillStores : 0;
  const kgpu::TargetModel &model = *kgpu::findTarget(chip);
  result.occupancy = occupancyOf(kernel, launch, model, result.registers);
  result.overlaps = launch.overlaps;
  result.counters = launch.dynamic ? unsigned(kgpu::kCounters) : 0;
  return result;
}

struct Choice {
  Compiled compiled;
  Cubin cubin;
  std::string remark;
};

/// Variants that take what the faster ones do not: they must exist.
bool isGeneral(tile::KernelOp kernel) { return kernel.getVariant() == "any" || kernel.getVariant() == "unit"; }

/// Products of warps take ptxas a third longer at -O3; other kernels become the same at both levels. Measured on an H200, products of single elements (`unit`,
/// `any`) are 7 % faster for it, those of vectors are not.
Ptxas::Effort effortFor(tile::KernelOp kernel) {
  return kernel.getVariant() == "vector64" ? Ptxas::Effort::Less : Ptxas::Effort::Most;
}

/// Bytes of registers and arrays in local memory; nothing when ptxas complains about more than that.
std::optional<unsigned> localBytes(const PtxasReport &report) {
  if (!report.warnings.empty())
    return std::nullopt;
  unsigned bytes = 0;
  for (const KernelReport &kernel : report.kernels)
    bytes += kernel.stackBytes + kernel.spillStores + kernel.spillLoads;
  return bytes;
}

/// The first candidate that ptxas likes.
Expected<Choice> choose(tile::KernelOp kernel, StringRef chip, const Ptxas &ptxas, unsigned optLevel, SlowCode slow, Others others) {
  if (others == Others::Serve && kgpu::leavesFewRegisters(kernel, *kgpu::findTarget(chip)))
    return createStringError("the accumulators of its products leave too few registers for operands");
  if (others == Others::Serve && kgpu::multipliesBytesByWarps(kernel, *kgpu::findTarget(chip)))
    return createStringError("warpgroups multiply 8-bit elements only where they are contiguous along what is summed over");
  // Without alternatives they are taken as wishes, for chips and variants that can.
  for (auto *whyNot : {kgpu::whyNoCluster, kgpu::whyNotDynamic})
    if (std::optional<std::string> why = others == Others::Serve ? whyNot(kernel, *kgpu::findTarget(chip)) : std::nullopt)
      return createStringError(*why);
  SmallVector<kgpu::Launch> launches = kgpu::candidates(kernel, *kgpu::findTarget(chip));
  auto hasRoles = [](const kgpu::Launch &launch) { return launch.consumers != 0; };
  bool onlyRoles = others == Others::Serve && any_of(launches, hasRoles);
  std::string findings;
  std::optional<Choice> lightest;
  unsigned fewest = std::numeric_limits<unsigned>::max();
  for (unsigned candidate = 0; candidate < launches.size(); ++candidate) {
    if (onlyRoles && !hasRoles(launches[candidate]))
      continue;
    auto compiled = compileCandidate(kernel, chip, candidate, optLevel);
    if (!compiled)
      return compiled.takeError();
    auto cubin = ptxas.assemble(compiled->ptx, chip, effortFor(kernel));
    if (!cubin)
      return cubin.takeError();
    std::vector<std::string> complaints = lint(cubin->report);
    unsigned threads = compiled->launch.threads;
    if (complaints.empty())
      return Choice{std::move(*compiled), std::move(*cubin), {}};
    std::optional<unsigned> local = localBytes(cubin->report);
    if ((isGeneral(kernel) || slow == SlowCode::Accept) && local && *local < fewest) {
      fewest = *local;
      lightest = Choice{std::move(*compiled), std::move(*cubin),
                        (kernel.getSymName() + " for " + chip + " is slow: " + join(complaints, "; ")).str()};
    }
    findings += "\n  with " + std::to_string(threads) + " threads: " + join(complaints, "; ");
  }
  if (lightest)
    return std::move(*lightest);
  return createStringError("no launch of %s runs at full speed on %s:%s", kernel.getSymName().str().c_str(), chip.str().c_str(), findings.c_str());
}

void addReports(GpuCode &code, lower::nvvm::ReportTexts &reports) {
  code.asserts = std::move(reports.asserts);
  code.prints = std::move(reports.prints);
}

} // namespace

/// What the cost model at run time asks about a machine.
static void addRates(GpuCode &code, tile::KernelOp kernel, StringRef chip, const kgpu::Launch &launch) {
  const kgpu::TargetModel &model = *kgpu::findTarget(chip);
  kgpu::Throughput most = kgpu::throughput(kernel, model, launch);
  code.flopsPerCycle = most.flops;
  code.flopsPerCycleAlone = most.alone;
  code.bytesPerCycle = most.bytes;
  code.resident = std::max(1u, model.residentCtas(code.launch.threads, code.launch.registers, code.launch.shared));
}

Expected<GpuCode> compileForChip(tile::KernelOp kernel, StringRef chip, const Ptxas &ptxas, unsigned optLevel, SlowCode slow,
                                 Others others) {
  auto chosen = choose(kernel, chip, ptxas, optLevel, slow, others);
  if (!chosen)
    return chosen.takeError();
  auto &[compiled, cubin, remark] = *chosen;
  GpuCode code;
  code.remark = std::move(remark);
  code.target = chip.str();
  addReports(code, compiled.reports);
  code.launch = packed(kernel, chip, compiled, cubin.report.find(kernel.getSymName()));
  addRates(code, kernel, chip, compiled.launch);
  if (compiled.launch.consumers)
    code.sharedCoordinate = kgpu::clusterCoordinate(kernel, *kgpu::findTarget(chip), compiled.launch.cluster);
  code.object = {"cubin/" + chip.str() + "/" + kernel.getSymName().str(), "cubin", std::move(cubin.bytes)};
  code.ptx = std::move(compiled.ptx);
  return code;
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

Expected<GpuCode> compileToPackedPtx(tile::KernelOp kernel, StringRef chip, unsigned optLevel) {
  GpuCode code;
  code.target = ptxTarget(chip);
  auto compiled = compileCandidate(kernel, chip, 0, optLevel);
  if (!compiled)
    return compiled.takeError();
  code.launch = packed(kernel, chip, *compiled, nullptr);
  addReports(code, compiled->reports);
  addRates(code, kernel, chip, compiled->launch);
  if (compiled->launch.consumers)
    code.sharedCoordinate = kgpu::clusterCoordinate(kernel, *kgpu::findTarget(chip), compiled->launch.cluster);
  code.object = {ptxSection(chip, kernel.getSymName()), "ptx", std::move(compiled->ptx)};
  return code;
}

Expected<std::string> kgpuText(mlir::ModuleOp variants, StringRef chip) {
  std::string text;
  raw_string_ostream stream(text);
  for (auto kernel : variants.getOps<tile::KernelOp>()) {
    Module module = layOut(kernel, chip, 0);
    if (!module)
      return createStringError("%s cannot be laid out for %s", kernel.getSymName().str().c_str(), chip.str().c_str());
    module->print(stream);
  }
  return text;
}

Expected<std::string> ptxText(mlir::ModuleOp variants, StringRef chip, unsigned optLevel) {
  std::string text;
  for (auto kernel : variants.getOps<tile::KernelOp>()) {
    auto compiled = compileCandidate(kernel, chip, 0, optLevel);
    if (!compiled)
      return compiled.takeError();
    text += compiled->ptx;
  }
  return text;
}

Expected<std::string> sassText(mlir::ModuleOp variants, StringRef chip, unsigned optLevel) {
  auto ptxas = Ptxas::find();
  if (!ptxas)
    return ptxas.takeError();
  std::string text;
  for (auto kernel : variants.getOps<tile::KernelOp>()) {
    auto code = compileForChip(kernel, chip, *ptxas, optLevel);
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
