// kpkg-plan: encodes the plan functions of MLIR text, lists their bytecode, and evaluates calls.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/pack/EncodePlan.h"
#include "dialect/plan/ir/Plan.h"
#include "dialect/plan/transforms/ShapeSlice.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "runtime/plan/Decoded.h"
#include "runtime/plan/Program.h"
#include "tools/kpkg-plan/CallText.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include <chrono>

using namespace mlir;
using namespace kpkg;
namespace cl = llvm::cl;

static cl::opt<std::string> input(cl::Positional, cl::desc("<file.mlir>"), cl::init("-"));
static cl::opt<std::string> opName("op", cl::desc("the function to encode; all with a schema, or all, if absent"));
static cl::opt<bool> listing("listing", cl::desc("print the bytecode as text"));
static cl::opt<bool> json("json", cl::desc("print the bytecode as JSON"));
static cl::opt<std::string> output("o", cl::desc("write the bytecode of --op to this file"));
static cl::opt<bool> shapes("shapes", cl::desc("encode the shape slice instead of the whole plan"));
static cl::list<std::string> calls("call",
                                   cl::desc("evaluate with these arguments: \"float32[2, 3]@[3, 1], None, -1, 0.5\""));

static cl::opt<int64_t> processors("processors", cl::desc("compute units of the device that the calls run on"),
                                   cl::init(plan::hostProcessors));
static cl::opt<bool> timing("time", cl::desc("print how long one evaluation takes, without a cache"));

static bool evaluateCall(const plan::Program &program, llvm::StringRef text) {
  TextCall call;
  std::string why;
  if (!parseCall({text.data(), text.size()}, call, why)) {
    llvm::errs() << "error: " << why << "\n";
    return false;
  }
  llvm::outs() << llvm::StringRef(program.name().data(), program.name().size()) << "(" << text << ")\n";
  plan::Resolution resolution;
  if (auto error = plan::evaluate(program, call.arguments, resolution, processors)) {
    llvm::outs() << "error in argument " << error->argument << ": " << error->message << "\n";
    return true;
  }
  llvm::outs() << plan::describe(program, resolution);
  if (timing) {
    constexpr int rounds = 10000;
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i)
      (void)plan::evaluate(program, call.arguments, resolution);
    std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - begin;
    llvm::errs() << llvm::formatv("{0:f2} us\n", all.count() / rounds);
  }
  return true;
}

static bool process(plan_ir::FuncOp function) {
  OwningOpRef<ModuleOp> slice;
  if (shapes) {
    slice = plan_ir::makeShapeSlice(function);
    if (!slice)
      return false;
    function = slice->lookupSymbol<plan_ir::FuncOp>(function.getName());
  }
  FailureOr<std::string> bytes = compiler::encodePlan(function);
  if (failed(bytes))
    return false;
  if (!output.empty()) {
    std::string why;
    auto file = openOutputFile(output, &why);
    if (!file) {
      llvm::errs() << "error: " << why << "\n";
      return false;
    }
    file->os() << *bytes;
    file->keep();
  }
  plan::Error error;
  auto program = plan::Program::load({reinterpret_cast<const uint8_t *>(bytes->data()), bytes->size()}, error);
  if (!program) {
    llvm::errs() << "error: " << error.message << "\n";
    return false;
  }
  if (listing)
    llvm::outs() << plan::dumpText(program->decoded());
  if (json)
    llvm::outs() << plan::dumpJson(program->decoded()) << "\n";
  return llvm::all_of(calls, [&](const std::string &call) { return evaluateCall(*program, call); });
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "kpkg-plan: encodes plan functions and evaluates calls of them\n");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<plan_ir::PlanDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect, ub::UBDialect>();
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, sources, &context);
  if (!module)
    return 1;
  bool hasSchemas =
      llvm::any_of(module->getOps<plan_ir::FuncOp>(), [](auto f) { return static_cast<bool>(f.getSchema()); });
  bool found = false, ok = true;
  for (auto function : module->getOps<plan_ir::FuncOp>()) {
    if (opName.empty() ? hasSchemas && !function.getSchema() : function.getName() != opName)
      continue;
    found = true;
    ok = process(function) && ok;
  }
  if (!found)
    llvm::errs() << "error: no such function\n";
  return ok && found ? 0 : 1;
}
