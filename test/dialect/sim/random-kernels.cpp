// kpkg-random-kernels: makes random tile kernels and compares what runs them with the interpreter.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomCall.h"
#include "dialect/pipeline/Registration.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"

using namespace kpkg;
using namespace kpkg::sim::test;

namespace {
struct Counts {
  int64_t kernels = 0, exact = 0, failed = 0;
};

llvm::cl::opt<uint64_t> firstSeed("seed", llvm::cl::init(1), llvm::cl::desc("first seed"));
llvm::cl::opt<int64_t> count("count", llvm::cl::init(100), llvm::cl::desc("how many kernels"));
llvm::cl::opt<bool> print("print", llvm::cl::desc("print the kernels"));
} // namespace

static void runOne(RandomKernel &kernel, Counts &counts) {
  ++counts.kernels;
  if (print)
    llvm::outs() << describe(kernel);
  llvm::Expected<Expectation> expectation = Expectation::of(kernel);
  if (!expectation) {
    ++counts.failed;
    llvm::outs() << "seed " << kernel.seed << ": " << llvm::toString(expectation.takeError()) << "\n";
    return;
  }
  counts.exact += expectation->isExact();
}

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "kpkg-random-kernels\n");
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Counts counts;
  for (int64_t i = 0; i < count; ++i) {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    RandomKernel kernel = generateKernel(*module, firstSeed + i);
    if (failed(mlir::verify(*module))) {
      ++counts.failed;
      llvm::outs() << describe(kernel);
      continue;
    }
    runOne(kernel, counts);
  }
  llvm::outs() << counts.kernels << " kernels, " << counts.exact << " exact, " << counts.failed << " failed\n";
  return counts.failed ? 1 : 0;
}
