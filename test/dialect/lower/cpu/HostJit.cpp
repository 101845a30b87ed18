// Implements HostJit with MLIR's conversions, LLVM's optimiser and ORC.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/dialect/lower/cpu/HostJit.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

namespace kpkg::test {

static void initialiseTargets() {
  static bool done = [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    return true;
  }();
  (void)done;
}

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect, cf::ControlFlowDialect,
                  vector::VectorDialect, LLVM::LLVMDialect, ub::UBDialect>();
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

void lowerToLLVMDialect(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(module)))
    llvm::report_fatal_error("conversion to the LLVM dialect failed");
}

static std::unique_ptr<llvm::TargetMachine> machineFor(StringRef tripleName, StringRef cpu, StringRef features) {
  initialiseTargets();
  llvm::Triple triple(tripleName);
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    llvm::report_fatal_error(llvm::StringRef(error));
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, cpu, features, llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

static std::unique_ptr<llvm::Module> optimised(ModuleOp module, llvm::TargetMachine &machine,
                                               llvm::LLVMContext &context) {
  std::unique_ptr<llvm::Module> result = translateModuleToLLVMIR(module, context);
  if (!result)
    llvm::report_fatal_error("translation to LLVM IR failed");
  result->setTargetTriple(machine.getTargetTriple());
  result->setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : *result)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", machine.getTargetCPU());
      function.addFnAttr("target-features", machine.getTargetFeatureString());
      if (machine.getTargetTriple().isX86() && machine.getTargetCPU() == "x86-64-v4")
        function.addFnAttr("prefer-vector-width", "512");
    }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(*result, modules);
  return result;
}

static std::string emitFile(ModuleOp module, StringRef triple, StringRef cpu, StringRef features,
                            llvm::CodeGenFileType type) {
  std::unique_ptr<llvm::TargetMachine> machine = machineFor(triple, cpu, features);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = optimised(module, *machine, context);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, type))
    llvm::report_fatal_error("target cannot emit files");
  passes.run(*code);
  return std::string(text);
}

std::string assemblyFor(ModuleOp module, StringRef triple, StringRef cpu, StringRef features) {
  return emitFile(module, triple, cpu, features, llvm::CodeGenFileType::AssemblyFile);
}

std::string objectFor(ModuleOp module, StringRef triple, StringRef cpu, StringRef features) {
  return emitFile(module, triple, cpu, features, llvm::CodeGenFileType::ObjectFile);
}

HostJit::HostJit(ModuleOp module, StringRef cpu) {
  std::string host = cpu.empty() ? llvm::sys::getHostCPUName().str() : cpu.str();
  llvm::SubtargetFeatures features;
  if (cpu.empty())
    for (auto &feature : llvm::sys::getHostCPUFeatures())
      features.AddFeature(feature.first(), feature.second);
  initialiseTargets();
  std::string object = objectFor(module, llvm::sys::getProcessTriple(), host, features.getString());
  jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  llvm::SmallVector<char, 0> bytes(object.begin(), object.end());
  llvm::cantFail(jit->addObjectFile(std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(bytes))));
}

HostJit::~HostJit() = default;

void *HostJit::address(StringRef name) { return llvm::cantFail(jit->lookup(name)).toPtr<void *>(); }

} // namespace kpkg::test
