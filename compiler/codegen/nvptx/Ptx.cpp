// Compiles GPU modules to PTX with LLVM's optimiser and its NVPTX code generator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/Ptx.h"
#include "compiler/codegen/nvptx/MarkConvergent.h"
#include "compiler/codegen/nvptx/MaskWideShifts.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// The newest PTX version that LLVM 22 writes. sm_90a alone would select 8.0, which lacks instructions that the
/// lowering uses.
constexpr StringLiteral Features = "+ptx90";

/// Selects 32-bit addresses for shared memory, which halves the registers for such pointers. LLVM has only a
/// command-line option for this. This option is set before each use, because lld, which links the CPU code in this
/// process, resets all options.
void useShortPointers() {
  static std::mutex lock;
  std::lock_guard<std::mutex> guard(lock);
  static constexpr StringLiteral name = "nvptx-short-ptr";
  auto &options = cl::getRegisteredOptions();
  if (auto found = options.find(name); found != options.end() && found->second->getNumOccurrences() == 0)
    found->second->addOccurrence(1, name, "true");
}

/// Skips a pass that takes a fifth of code generation without effect, because kernels address memory by a base and
/// constants.
class UsefulPasses : public OptPassGate {
public:
  bool shouldRunPass(StringRef pass, StringRef) const override { return pass != "Straight line strength reduction"; }
  bool isEnabled() const override { return true; }
};

void initializeTarget() {
  [[maybe_unused]] static const bool once = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
}

Expected<std::unique_ptr<TargetMachine>> makeTargetMachine(StringRef chip, unsigned optLevel) {
  initializeTarget();
  useShortPointers();
  Triple triple("nvptx64-nvidia-cuda");
  std::string reason;
  const Target *target = TargetRegistry::lookupTarget(triple, reason);
  if (!target)
    return createStringError("this build of LLVM has no NVPTX target: %s", reason.c_str());
  // A higher level repeats value numbering twice, with the same PTX.
  auto level = optLevel == 0 ? CodeGenOptLevel::None : CodeGenOptLevel::Default;
  return std::unique_ptr<TargetMachine>(
      target->createTargetMachine(triple, chip, Features, TargetOptions(), std::nullopt, std::nullopt, level));
}

void optimize(Module &module, TargetMachine &machine, unsigned optLevel) {
  PipelineTuningOptions tuning;
  // The lowering has chosen the widths of accesses, and writes packed arithmetic as vectors of two.
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  PassBuilder builder(&machine, tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graphs;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  ModulePassManager passes;
  passes.addPass(MarkConvergent());
  if (optLevel == 0)
    passes.addPass(builder.buildO0DefaultPipeline(OptimizationLevel::O0));
  else
    passes.addPass(builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2));
  passes.addPass(MaskWideShifts()); // last, since LLVM would remove the masks
  passes.run(module, modules);
}

Expected<std::unique_ptr<Module>> translate(mlir::Operation *module, LLVMContext &context, TargetMachine &machine,
                                            unsigned optLevel) {
  mlir::MLIRContext &mlirContext = *module->getContext();
  mlir::registerBuiltinDialectTranslation(mlirContext);
  mlir::registerLLVMDialectTranslation(mlirContext);
  mlir::registerGPUDialectTranslation(mlirContext);
  mlir::registerNVVMDialectTranslation(mlirContext);
  // Converts NVVM instructions without an LLVM intrinsic, such as wgmma.mma_async, to PTX.
  mlir::PassManager passes(&mlirContext, module->getName().getStringRef());
  passes.addPass(mlir::createConvertNVVMToLLVMPass());
  if (failed(passes.run(module)))
    return createStringError("the lowered kernels have instructions without a translation");
  std::unique_ptr<Module> translated = mlir::translateModuleToLLVMIR(module, context, "kernels");
  if (!translated)
    return createStringError("the lowered kernels do not translate to LLVM IR");
  translated->setTargetTriple(machine.getTargetTriple());
  translated->setDataLayout(machine.createDataLayout());
  optimize(*translated, machine, optLevel);
  return translated;
}

} // namespace

Expected<std::string> compileToPtx(mlir::Operation *module, StringRef chip, unsigned optLevel) {
  auto machine = makeTargetMachine(chip, optLevel);
  if (!machine)
    return machine.takeError();
  LLVMContext context;
  UsefulPasses useful;
  context.setOptPassGate(useful);
  auto translated = translate(module, context, **machine, optLevel);
  if (!translated)
    return translated.takeError();
  SmallString<0> text;
  raw_svector_ostream stream(text);
  legacy::PassManager emission;
  if ((*machine)->addPassesToEmitFile(emission, stream, nullptr, CodeGenFileType::AssemblyFile))
    return createStringError("LLVM cannot write PTX for %s", chip.str().c_str());
  emission.run(**translated);
  return std::string(text);
}

Expected<std::string> compileToNvptxLlvmText(mlir::Operation *module, StringRef chip, unsigned optLevel) {
  auto machine = makeTargetMachine(chip, optLevel);
  if (!machine)
    return machine.takeError();
  LLVMContext context;
  auto translated = translate(module, context, **machine, optLevel);
  if (!translated)
    return translated.takeError();
  std::string text;
  raw_string_ostream stream(text);
  (*translated)->print(stream, nullptr);
  return text;
}

} // namespace kpkg::compiler
