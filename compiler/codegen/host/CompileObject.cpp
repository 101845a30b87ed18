// Compiles the LLVM dialect to a relocatable object with LLVM's optimiser and code generator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cache/CodeCache.h"
#include "compiler/codegen/host/HostCode.h"
#include "compiler/codegen/host/ThreadFrames.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMInitializeAArch64TargetInfo();
void LLVMInitializeAArch64Target();
void LLVMInitializeAArch64TargetMC();
void LLVMInitializeAArch64AsmPrinter();
}

using namespace llvm;

namespace kpkg::compiler {

namespace {

namespace attributes = lower::cpu::attributes;

void initializeTargets() {
  [[maybe_unused]] static const bool once = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    return true;
  }();
}

Expected<std::unique_ptr<TargetMachine>> makeTargetMachine(const lower::cpu::CpuTarget &target, unsigned optLevel) {
  initializeTargets();
  Triple triple(target.triple);
  std::string reason;
  const Target *llvmTarget = TargetRegistry::lookupTarget(triple, reason);
  if (!llvmTarget)
    return createStringError("this build of LLVM has no %s target: %s", target.isa.str().c_str(), reason.c_str());
  TargetOptions options;
  options.FunctionSections = true;
  auto level = optLevel == 0 ? CodeGenOptLevel::None : optLevel == 1 ? CodeGenOptLevel::Less : CodeGenOptLevel::Default;
  return std::unique_ptr<TargetMachine>(llvmTarget->createTargetMachine(triple, target.cpu, target.features, options,
                                                                        Reloc::PIC_, CodeModel::Small, level));
}

/// Enables the target's whole instruction set, and prevents calls of the C library, because the object must stand
/// alone.
void setFunctionAttributes(Module &module, const lower::cpu::CpuTarget &target) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty())
      function.addFnAttr("target-features", target.features);
    if (target.preferredVectorBits)
      function.addFnAttr("prefer-vector-width", std::to_string(target.preferredVectorBits));
    function.addFnAttr("no-builtins");
    function.addFnAttr(Attribute::NoUnwind);
  }
}

void optimize(Module &module, TargetMachine &machine, unsigned optLevel) {
  // The lowering has chosen the vectors; LLVM's own vectorisers would only find the tails.
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  PassBuilder builder(&machine, tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graphs;
  ModuleAnalysisManager modules;
  TargetLibraryInfoImpl noLibrary(machine.getTargetTriple());
  noLibrary.disableAllFunctions();
  functions.registerPass([&] { return TargetLibraryAnalysis(noLibrary); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  OptimizationLevel level = optLevel == 0   ? OptimizationLevel::O0
                            : optLevel == 1 ? OptimizationLevel::O1
                            : optLevel == 2 ? OptimizationLevel::O2
                                            : OptimizationLevel::O3;
  ModulePassManager passes =
      optLevel == 0 ? builder.buildO0DefaultPipeline(level) : builder.buildPerModuleDefaultPipeline(level);
  passes.run(module, modules);
}

std::vector<std::string> strings(mlir::Operation *op, StringRef name) {
  std::vector<std::string> texts;
  if (auto array = op->getAttrOfType<mlir::ArrayAttr>(name))
    for (auto text : array.getAsRange<mlir::StringAttr>())
      texts.push_back(text.str());
  return texts;
}

/// Returns the entries that the lowering has marked.
std::vector<HostKernel> kernelsOf(mlir::ModuleOp module) {
  std::vector<HostKernel> kernels;
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr(attributes::kernel))
      continue;
    HostKernel kernel;
    kernel.symbol = function.getSymName().str();
    if (auto scratch = function->getAttrOfType<mlir::IntegerAttr>(attributes::scratch))
      kernel.scratchBytes = scratch.getInt();
    if (auto threads = function->getAttrOfType<mlir::IntegerAttr>(attributes::threads))
      kernel.frames = threads.getInt();
    kernel.isPersistent = function->hasAttr(attributes::persistent);
    kernel.asserts = strings(function, attributes::asserts);
    kernel.prints = strings(function, attributes::prints);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

Expected<std::unique_ptr<Module>> translate(mlir::ModuleOp module, LLVMContext &context, TargetMachine &machine,
                                            const lower::cpu::CpuTarget &target) {
  mlir::registerBuiltinDialectTranslation(*module.getContext());
  mlir::registerLLVMDialectTranslation(*module.getContext());
  std::unique_ptr<Module> translated = mlir::translateModuleToLLVMIR(module, context, "kernels");
  if (!translated)
    return createStringError("the lowered kernels do not translate to LLVM IR");
  translated->setTargetTriple(machine.getTargetTriple());
  translated->setDataLayout(machine.createDataLayout());
  setFunctionAttributes(*translated, target);
  return translated;
}

/// Returns the key of the object that this file makes of `module`. The module has the CPU and its features as
/// attributes of functions.
std::string cacheKey(const Module &module, unsigned optLevel) {
  SmallString<0> bitcode;
  raw_svector_ostream stream(bitcode);
  WriteBitcodeToFile(module, stream);
  return CodeCache::keyOf({"object", LLVM_VERSION_STRING, KPKG_SOURCE_DIGEST, std::to_string(optLevel), bitcode});
}

/// Returns the key of the sizes of that object's coroutine frames.
std::string frameKey(StringRef key) { return CodeCache::keyOf({"frames", key}); }

} // namespace

Expected<HostObject> compileToObject(mlir::ModuleOp module, const lower::cpu::CpuTarget &target, unsigned optLevel) {
  auto machine = makeTargetMachine(target, optLevel);
  if (!machine)
    return machine.takeError();
  HostObject object;
  object.kernels = kernelsOf(module);
  LLVMContext context;
  auto translated = translate(module, context, **machine, target);
  if (!translated)
    return translated.takeError();
  CodeCache cache = CodeCache::fromEnvironment();
  std::string key = cacheKey(**translated, optLevel);
  if (auto bytes = cache.read(key); bytes && addFrames(object.kernels, cache.read(frameKey(key)).value_or(""))) {
    object.bytes = std::move(*bytes);
    return object;
  }
  optimize(**translated, **machine, optLevel);
  std::string frames = settleFrames(**translated);
  addFrames(object.kernels, frames);
  SmallString<0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager emission;
  if ((*machine)->addPassesToEmitFile(emission, stream, nullptr, CodeGenFileType::ObjectFile))
    return createStringError("LLVM cannot write objects for %s", target.isa.str().c_str());
  emission.run(**translated);
  object.bytes = std::string(bytes);
  if (!frames.empty())
    cache.write(frameKey(key), frames);
  cache.write(key, object.bytes);
  return object;
}

Expected<std::string> compileToLlvmText(mlir::ModuleOp module, const lower::cpu::CpuTarget &target, unsigned optLevel) {
  auto machine = makeTargetMachine(target, optLevel);
  if (!machine)
    return machine.takeError();
  LLVMContext context;
  auto translated = translate(module, context, **machine, target);
  if (!translated)
    return translated.takeError();
  optimize(**translated, **machine, optLevel);
  settleFrames(**translated);
  std::string text;
  raw_string_ostream stream(text);
  (*translated)->print(stream, nullptr);
  return text;
}

} // namespace kpkg::compiler
