// kpkg-irgen: checks .k files and prints the front end's output, for tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Render.h"
#include "compiler/irgen/Generate.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace kpkg::compiler;

static llvm::cl::list<std::string> inputs(llvm::cl::Positional, llvm::cl::OneOrMore, llvm::cl::desc("files"));
static llvm::cl::list<std::string> importPaths("I", llvm::cl::Prefix, llvm::cl::desc("folder for imports"));
static llvm::cl::opt<std::string> emit("emit", llvm::cl::init("all"),
                                       llvm::cl::desc("hir, schema, tile, plan, all or nothing"));
static llvm::cl::opt<std::string> only("only", llvm::cl::desc("only instances whose symbol contains this"));
static llvm::cl::opt<unsigned> steps("steps", llvm::cl::init(1u << 22), llvm::cl::desc("limit of comptime steps"));

static void printSchemas(const Program &program) {
  for (const KernelRecord &kernel : program.kernels()) {
    if (kernel.isImported && !kernel.isLaunched)
      continue;
    llvm::outs() << "kernel " << kernel.name << (kernel.isPersistent ? " persistent" : "") << " [";
    for (const KernelParameter &parameter : kernel.parameters)
      llvm::outs() << parameter.name << ": " << parameter.kind << "; ";
    llvm::outs() << "] (";
    for (const KernelArgument &argument : kernel.arguments)
      llvm::outs() << (argument.isMut ? "mut " : "") << argument.name << ": " << argument.dtype
                   << (argument.isView ? " view " + std::to_string(argument.rank) : " scalar") << "; ";
    llvm::outs() << ") " << kernel.instances.size() << " instances\n";
  }
  for (const OpRecord &op : program.ops())
    llvm::outs() << "op " << op.name << " | " << op.schema
                 << (op.reference.empty() ? "" : " | reference " + op.reference) << "\n";
}

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "checks .k files and prints IR\n");
  SourceManager sources;
  DiagnosticEngine diags;
  ProgramOptions options;
  options.importPaths.assign(importPaths.begin(), importPaths.end());
  options.maxComptimeSteps = steps;
  auto program = Program::load({inputs.begin(), inputs.end()}, options, sources, diags);
  program->check([](const KernelRecord &, const KernelInstance &instance) {
    return only.empty() || instance.symbol.find(only) != std::string::npos;
  });
  llvm::errs() << renderText(diags, sources);
  if (diags.hasErrors())
    return 1;
  bool all = emit == "all";
  if (emit == "schema")
    printSchemas(*program);
  if (emit == "hir") {
    for (InstanceRef ref : checkedInstances(*program))
      llvm::outs() << hir::print(*program->kernel(ref.kernel, ref.instance));
    for (size_t i = 0; i < program->ops().size(); ++i)
      llvm::outs() << hir::print(*program->op(i));
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  if (all || emit == "tile") {
    auto module = generateKernels(*program, sources, checkedInstances(*program), context);
    if (!module)
      return 1;
    module->print(llvm::outs());
  }
  if (all || emit == "plan") {
    auto module = generateOps(*program, sources, context);
    if (!module)
      return 1;
    module->print(llvm::outs());
  }
  return 0;
}
