// A kernel of the tile dialect through the interpreter, the pipeline for Hopper, the verifier of schedules and the
// simulator, and a call of one whose results are compared.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_SIM_SIMULATED_TEST_H
#define KPKG_TEST_SIM_SIMULATED_TEST_H

#include "Mutations.h"
#include "dialect/kgpu/Passes.h"
#include "dialect/sim/async/Simulator.h"
#include "mlir/IR/BuiltinOps.h"
#include <gtest/gtest.h>

namespace kpkg {

struct SimulatedTest : testing::Test {
  SimulatedTest();
  mlir::MLIRContext context;

  static tile::KernelOp kernelOf(mlir::ModuleOp module) { return *module.getOps<tile::KernelOp>().begin(); }
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef source);
  /// Through all passes for sm_90a, in place.
  void compile(mlir::ModuleOp module);

  /// Tensors in row-major order; of bfloat16 where no type is given.
  sim::View view(void *data, mlir::Type element, llvm::ArrayRef<int64_t> shape);
  sim::View view(std::vector<uint16_t> &data, llvm::ArrayRef<int64_t> shape);

  /// What the interpreter, the simulator or the verifier finds wrong; empty where nothing is.
  static std::string interpret(mlir::ModuleOp module, llvm::ArrayRef<sim::Argument> arguments);
  static std::string simulate(mlir::ModuleOp module, llvm::ArrayRef<sim::Argument> arguments, uint64_t seed,
                              int64_t ctas);
  std::string verify(mlir::ModuleOp module);
};

/// One call of one kernel: however the compiled kernel is run, it has to give what the interpreter makes of its source,
/// bit for bit.
struct ComparedTest : SimulatedTest {
  /// The kernel's arguments in their order; tensors of uint16_t hold bfloat16. What is written holds poison, or the
  /// number given, before each run.
  void reads(const std::vector<uint16_t> &values, llvm::ArrayRef<int64_t> shape);
  void reads(const std::vector<float> &values, llvm::ArrayRef<int64_t> shape);
  void writes(llvm::ArrayRef<int64_t> shape);
  void writes(llvm::ArrayRef<int64_t> shape, float before);
  void takes(int64_t number);
  /// Keeps what the interpreter makes of the kernel, and compiles it to `module`.
  void prepare(llvm::StringRef source);

  mlir::OwningOpRef<mlir::ModuleOp> module;

  /// What the simulator finds; empty for right results.
  std::string outcome(mlir::ModuleOp module, uint64_t seed, int64_t ctas);
  /// The verifier accepts the kernel, and so many runs are right, by these numbers of CTAs in turn.
  void expectRight(uint64_t runs, llvm::ArrayRef<int64_t> ctas = {1, 2});
  /// Of the changes of the kernel there are `least` or more, and 95 % are found, the simulator having so many runs.
  /// Where runs take long, they are spared for changes that the verifier refuses.
  Found expectFound(int64_t least, uint64_t runs, int64_t ctas, bool sparesRefused = false);

private:
  struct Tensor {
    mlir::Type element;
    llvm::SmallVector<int64_t> shape;
    std::vector<char> now, before, expected; // the latter two are empty for what is read only
  };
  template <typename T> Tensor &add(const std::vector<T> &values, mlir::Type element, llvm::ArrayRef<int64_t> shape);
  std::vector<sim::Argument> arguments();
  std::vector<Tensor> tensors;
  std::vector<sim::Argument> numbers;
};

/// Small whole numbers as bfloat16, -2 to 2, or -1 to 1: sums of them and of their products are exact, so results are
/// equal bit for bit.
uint16_t wholeNumber(size_t i);
uint16_t sign(size_t i);
std::vector<uint16_t> wholeNumbers(int64_t count, size_t seed);
/// Signs of factor * i + i / group.
std::vector<uint16_t> signs(int64_t count, size_t factor, size_t group);
/// What results are filled with before a run.
constexpr uint16_t poison = 0x7fc0;

} // namespace kpkg
#endif
