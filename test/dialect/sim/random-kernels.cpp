// Implements kpkg-random-kernels: compares compiled random tile kernels on this CPU with the interpreter.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "BatchProcesses.h"
#include "CompiledCall.h"
#include "RandomCall.h"
#include "TorchFiles.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "dialect/pipeline/Registration.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include <atomic>

using namespace kpkg;
using namespace kpkg::sim::test;

static llvm::cl::opt<uint64_t> firstSeed("seed", llvm::cl::init(1), llvm::cl::desc("first seed"));
static llvm::cl::opt<int64_t> kernelCount("count", llvm::cl::init(100), llvm::cl::desc("how many kernels"));
static llvm::cl::opt<int64_t> batchSize("batch", llvm::cl::init(16), llvm::cl::desc("kernels compiled together"));
static llvm::cl::opt<int> jobs("jobs", llvm::cl::init(1), llvm::cl::desc("processes at a time"));
static llvm::cl::opt<bool> print("print", llvm::cl::desc("print the kernels and run nothing"));
static llvm::cl::opt<bool> interpretOnly("interpret-only", llvm::cl::desc("compile nothing"));
static llvm::cl::opt<std::string>
    torchFolder("torch", llvm::cl::desc("write the kernels for PyTorch into this folder, and run nothing"));
static llvm::cl::opt<std::string> isa("isa", llvm::cl::init("x86-64-v3"),
                                      llvm::cl::desc("instruction set to compile for"));
static llvm::cl::opt<unsigned> optLevel("O", llvm::cl::Prefix, llvm::cl::init(1),
                                        llvm::cl::desc("optimisation level of LLVM"));
static llvm::cl::opt<bool> verbose("verbose", llvm::cl::desc("print the kernels that fail"));

namespace {
/// Totals in memory that the processes share.
struct Totals {
  std::atomic<int64_t> kernels, exact, runs, failed, refused;
};

class Batch {
public:
  Batch(uint64_t first, int64_t count, Totals &totals) : first(first), count(count), totals(totals) {}
  void run();

private:
  void fail(const RandomKernel &kernel, const llvm::Twine &message);
  void check(RandomKernel &kernel, const CompiledModule *compiled = nullptr, llvm::ArrayRef<std::string> variants = {});

  uint64_t first;
  int64_t count;
  Totals &totals;
};
} // namespace

void Batch::fail(const RandomKernel &kernel, const llvm::Twine &message) {
  ++totals.failed;
  llvm::outs() << "seed " << kernel.seed << ": " << message << "\n";
  if (verbose)
    llvm::outs() << describe(kernel);
  llvm::outs().flush();
}

void Batch::check(RandomKernel &kernel, const CompiledModule *compiled, llvm::ArrayRef<std::string> variants) {
  ++totals.kernels;
  llvm::Expected<Expectation> expectation = Expectation::of(kernel);
  if (!expectation)
    return fail(kernel, llvm::toString(expectation.takeError()));
  totals.exact += expectation->isExact();
  for (const std::string &variant : variants) {
    Memory memory = makeMemory(kernel);
    if (llvm::Error failed = compiled->run(kernel, variant, memory))
      return fail(kernel, variant + ": " + llvm::toString(std::move(failed)));
    if (std::optional<std::string> wrong = expectation->check(kernel, memory))
      return fail(kernel, variant + ": " + *wrong);
    ++totals.runs;
  }
}

void Batch::run() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  lower::cpu::registerLoweringDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  std::vector<RandomKernel> kernels;
  for (int64_t i = 0; i < count; ++i) {
    kernels.push_back(generateKernel(*module, first + i));
    if (print)
      llvm::outs() << describe(kernels.back());
  }
  if (failed(mlir::verify(*module))) {
    totals.failed += count;
    return;
  }
  if (print)
    return;
  if (!torchFolder.empty()) {
    totals.kernels += count;
    std::string stem = torchFolder + "/" + std::to_string(first);
    if (llvm::Error failed = writeTorchFiles(stem, kernels))
      fail(kernels.front(), llvm::toString(std::move(failed)));
    return;
  }
  if (interpretOnly) {
    for (RandomKernel &kernel : kernels)
      check(kernel);
    return;
  }
  llvm::Expected<CompiledModule> all = CompiledModule::compile(kernels, isa, optLevel);
  if (all) {
    for (size_t i = 0; i < kernels.size(); ++i)
      check(kernels[i], &*all, all->variants[i]);
    return;
  }
  llvm::consumeError(all.takeError());
  for (RandomKernel &kernel : kernels) { // Find the kernels that do not compile.
    llvm::Expected<CompiledModule> one = CompiledModule::compile(kernel, isa, optLevel);
    if (!one) {
      ++totals.kernels;
      ++totals.refused;
      fail(kernel, llvm::toString(one.takeError()));
      continue;
    }
    check(kernel, &*one, one->variants[0]);
  }
}

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "kpkg-random-kernels\n");
  auto &totals = sharedWithChildren<Totals>();
  runBatches(
      {firstSeed, kernelCount, batchSize, jobs},
      [&](uint64_t first, int64_t count) { Batch(first, count, totals).run(); },
      [&](uint64_t seed, const std::string &signal) {
        ++totals.kernels;
        ++totals.failed;
        llvm::outs() << "seed " << seed << ": " << signal << "\n";
      });
  if (!print)
    llvm::outs() << totals.kernels << " kernels (" << totals.exact << " exact), " << totals.runs
                 << " compiled runs agree, " << totals.failed << " failed (" << totals.refused << " do not compile)\n";
  return totals.failed ? 1 : 0;
}
