// Implements kpkg-random-device-kernels: compiles random tile kernels for GPUs, and writes them with expected results.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Needs ptxas but no GPU. test/device/random_kernels.py runs the output. Every third kernel has tensors that satisfy
// the facts of vector code.
#include "BatchProcesses.h"
#include "DeviceBundle.h"
#include "dialect/pipeline/Registration.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include <atomic>

using namespace kpkg;
using namespace kpkg::sim::test;

static llvm::cl::opt<uint64_t> firstSeed("seed", llvm::cl::init(1), llvm::cl::desc("first seed"));
static llvm::cl::opt<int64_t> kernelCount("count", llvm::cl::init(100), llvm::cl::desc("how many kernels"));
static llvm::cl::opt<int64_t> batchSize("batch", llvm::cl::init(25),
                                        llvm::cl::desc("kernels of one process and of one file"));
static llvm::cl::opt<int> jobs("jobs", llvm::cl::init(1), llvm::cl::desc("processes at a time"));
static llvm::cl::list<std::string> chips("chip", llvm::cl::CommaSeparated,
                                         llvm::cl::desc("chips to compile for (default sm_90a)"));
static llvm::cl::opt<std::string> folder("out",
                                         llvm::cl::desc("folder for the files; without it, kernels are only compiled"));
static llvm::cl::opt<bool> print("print", llvm::cl::desc("print the kernels and compile nothing"));

namespace {
/// Totals in memory that the processes share.
struct Totals {
  std::atomic<int64_t> compiled, failed, vectors, codeBytes;
};

class Batch {
public:
  Batch(const compiler::Ptxas &ptxas, Totals &totals) : bundle(chips, ptxas), totals(totals) {}
  void run(uint64_t first, int64_t count);

private:
  void fail(uint64_t seed, const llvm::Twine &message);

  DeviceBundle bundle;
  Totals &totals;
};
} // namespace

void Batch::fail(uint64_t seed, const llvm::Twine &message) {
  ++totals.failed;
  llvm::outs() << "seed " << seed << ": " << message << "\n";
  llvm::outs().flush();
}

void Batch::run(uint64_t first, int64_t count) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    RandomKernel kernel = generateKernel(*module, seed, seed % 3 == 0 ? CallStyle::Vectors : CallStyle::Scattered);
    if (print)
      llvm::outs() << describe(kernel);
    if (failed(mlir::verify(*module)))
      fail(seed, "the generator's kernel is invalid");
    else if (print)
      continue;
    else if (llvm::Error failed = bundle.add(kernel))
      fail(seed, llvm::toString(std::move(failed)));
    else
      ++totals.compiled;
  }
  for (auto &[name, variants] : bundle.variantCounts())
    if (name.starts_with("vector"))
      totals.vectors += variants;
  totals.codeBytes += bundle.machineCodeBytes();
  if (!folder.empty() && !print)
    if (llvm::Error failed = bundle.write(folder + "/" + std::to_string(first) + "-" + std::to_string(count)))
      fail(first, llvm::toString(std::move(failed)));
}

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "kpkg-random-device-kernels\n");
  if (chips.empty())
    chips.push_back("sm_90a");
  llvm::Expected<compiler::Ptxas> ptxas = compiler::Ptxas::find();
  if (!ptxas) {
    llvm::errs() << llvm::toString(ptxas.takeError()) << "\n";
    return 1;
  }
  if (!folder.empty())
    if (std::error_code error = llvm::sys::fs::create_directories(folder)) {
      llvm::errs() << folder << ": " << error.message() << "\n";
      return 1;
    }
  auto &totals = sharedWithChildren<Totals>();
  runBatches(
      {firstSeed, kernelCount, batchSize, jobs},
      [&](uint64_t first, int64_t count) { Batch(*ptxas, totals).run(first, count); },
      [&](uint64_t seed, const std::string &signal) {
        ++totals.failed;
        llvm::outs() << "seed " << seed << ": " << signal << "\n";
      });
  if (!print)
    llvm::outs() << totals.compiled << " kernels compile for " << llvm::join(chips, ", ") << " (" << totals.vectors
                 << " codes with vector facts, " << totals.codeBytes << " bytes in all), " << totals.failed
                 << " do not\n";
  return totals.failed ? 1 : 0;
}
