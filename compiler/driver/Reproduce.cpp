// Writes the inputs of stages as reproducers, and runs them again.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Reproduce.h"
#include "compiler/codegen/host/HostCode.h"
#include "compiler/codegen/nvptx/Tool.h"
#include "compiler/codegen/temporary/TemporaryFolder.h"
#include "compiler/driver/CompileOne.h"
#include "compiler/driver/Guard.h"
#include "compiler/driver/LineTables.h"
#include "compiler/driver/Simplify.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "dialect/pipeline/GpuPipeline.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>

using namespace llvm;

namespace kpkg::compiler {

static std::string printed(mlir::Operation *op) {
  std::string text;
  raw_string_ostream stream(text);
  op->print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  return text + "\n";
}

/// Returns a reproducer without the fields of its caller. `pipeline` is for kpkg-opt.
static Reproducer begin(StringRef stage, StringRef target, std::string pipeline, std::string input) {
  Reproducer result;
  result.set("stage", stage.str());
  result.set("target", target.str());
  result.set("pipeline", std::move(pipeline));
  result.input = std::move(input);
  return result;
}

Reproducer reproducerForSimplify(mlir::ModuleOp module) {
  return begin("simplify", "all", "builtin.module(canonicalize,cse)", printed(module));
}

Reproducer reproducerForCpu(mlir::ModuleOp module, const lower::cpu::CpuTarget &target, const CompileOptions &options) {
  std::string isa = target.isa.str();
  Reproducer result = begin("cpu", isa, "builtin.module(lower-cpu{isa=" + isa + "})", printed(module));
  result.set("level", std::to_string(options.optLevel));
  result.set("flags", options.lineTables ? "lines" : "");
  return result;
}

Reproducer reproducerForGpu(tile::KernelOp kernel, StringRef chip, CodeOptions options, bool hasPtxas, Others others) {
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(kernel.getLoc());
  module->push_back(kernel.clone());
  mlir::PassManager passes(kernel.getContext());
  buildGpuPipeline(passes, chip);
  std::string pipeline;
  raw_string_ostream stream(pipeline);
  passes.printAsTextualPipeline(stream);
  Reproducer result = begin("gpu", chip, std::move(pipeline), printed(*module));
  result.set("level", std::to_string(options.optLevel));
  SmallVector<StringRef> flags;
  for (auto [isOn, name] : {std::pair(options.lineTables, "lines"),
                            {options.shortestCode, "shortest"},
                            {options.findsSpills, "spills"},
                            {others == Others::Serve, "others"},
                            {hasPtxas, "ptxas"}})
    if (isOn)
      flags.push_back(name);
  result.set("flags", join(flags, " "));
  return result;
}

static Error runCpu(const Reproducer &reproducer, mlir::ModuleOp module, unsigned level, bool hasLines) {
  auto target = lower::cpu::CpuTarget::find(reproducer.get("target"));
  if (!target)
    return target.takeError();
  beginStep("lower-cpu", module);
  if (failed(lower::cpu::lowerToLLVM(module, *target)))
    return createStringError("the kernel cannot be lowered");
  if (hasLines)
    addLineTables(module, LineTableKind::Dwarf);
  beginStep("llvm", module);
  return compileToObject(module, *target, level).takeError();
}

static Error runGpu(const Reproducer &reproducer, mlir::ModuleOp module, unsigned level) {
  SmallVector<StringRef> flags;
  reproducer.get("flags").split(flags, ' ');
  CodeOptions options(level, is_contained(flags, "lines"));
  options.shortestCode = is_contained(flags, "shortest");
  options.findsSpills = is_contained(flags, "spills");
  std::string chip = reproducer.get("target").str();
  for (auto kernel : module.getOps<tile::KernelOp>()) {
    if (!is_contained(flags, "ptxas")) {
      if (auto code = compileToPackedPtx(kernel, chip, options); !code)
        return code.takeError();
      continue;
    }
    auto ptxas = Ptxas::find();
    if (!ptxas)
      return ptxas.takeError();
    if (auto code = compileForChip(kernel, chip, *ptxas, options, SlowCode::Refuse,
                                   is_contained(flags, "others") ? Others::Serve : Others::None);
        !code)
      return code.takeError();
  }
  return Error::success();
}

static Error runPtxas(const Reproducer &reproducer) {
  auto ptxas = Ptxas::find();
  if (!ptxas)
    return ptxas.takeError();
  auto folder = TemporaryFolder::create();
  if (!folder)
    return folder.takeError();
  auto input = folder->write("kernel.ptx", reproducer.input);
  if (!input)
    return input.takeError();
  ToolOutcome outcome = ptxas->run(reproducer.input, reproducer.get("target"), reproducer.get("level"), *input,
                                   folder->file("kernel.cubin"));
  return outcome.code == 0 ? Error::success()
                           : createStringError("%s, ptxas %s: %s%s", ptxas->path().c_str(), ptxas->version().c_str(),
                                               outcome.failure.c_str(), outcome.output.c_str());
}

Error runAgain(const Reproducer &reproducer) {
  ::setenv("KPKG_CACHE_DIR", "", /*overwrite=*/1);
  StringRef stage = reproducer.get("stage");
  if (stage == "ptxas")
    return runPtxas(reproducer);
  auto context = makeContext();
  IrMessages messages(*context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(reproducer.input, context.get());
  if (!module)
    return createStringError("%s", messages.text().c_str());
  unsigned level = 2;
  if (StringRef text = reproducer.get("level"); !text.empty() && text.getAsInteger(10, level))
    return createStringError("its line `// level: %s` has no number", text.str().c_str());
  Error error = Error::success();
  if (stage == "cpu")
    error = runCpu(reproducer, *module, level, reproducer.get("flags") == "lines");
  else if (stage == "gpu")
    error = runGpu(reproducer, *module, level);
  else if (stage == "simplify")
    module = simplified(std::move(module));
  else
    return createStringError("its stage `%s` is none of simplify, cpu, gpu and ptxas", stage.str().c_str());
  return error ? createStringError(withReports(std::move(error), messages)) : Error::success();
}

} // namespace kpkg::compiler
