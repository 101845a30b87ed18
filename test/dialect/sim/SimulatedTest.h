// Runs kernels through the interpreter, the pipeline for Hopper, the schedule verifier and the simulator, and compares
// results.
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
  /// Runs all passes for sm_90a, in place.
  void compile(mlir::ModuleOp module);

  /// Returns a row-major tensor, of bfloat16 where no type is given.
  sim::View view(void *data, mlir::Type element, llvm::ArrayRef<int64_t> shape);
  sim::View view(std::vector<uint16_t> &data, llvm::ArrayRef<int64_t> shape);

  /// Return the error that the interpreter, the simulator or the verifier finds, or an empty text.
  static std::string interpret(mlir::ModuleOp module, llvm::ArrayRef<sim::Argument> arguments);
  static std::string simulate(mlir::ModuleOp module, llvm::ArrayRef<sim::Argument> arguments, uint64_t seed,
                              int64_t ctas);
  std::string verify(mlir::ModuleOp module);
};

/// Compares one call of a kernel: every run of the compiled kernel must give the interpreter's results, bit for bit.
struct ComparedTest : SimulatedTest {
  /// Adds the kernel's arguments in order. Tensors of uint16_t hold bfloat16. Written tensors hold poison, or the given
  /// number, before each run.
  void reads(const std::vector<uint16_t> &values, llvm::ArrayRef<int64_t> shape);
  void reads(const std::vector<float> &values, llvm::ArrayRef<int64_t> shape);
  void writes(llvm::ArrayRef<int64_t> shape);
  void writes(llvm::ArrayRef<int64_t> shape, float before);
  void takes(int64_t number);
  /// Stores the interpreter's results of the kernel, and compiles the kernel to `module`.
  void prepare(llvm::StringRef source);

  mlir::OwningOpRef<mlir::ModuleOp> module;

  /// Returns the error that the simulator finds; empty for right results.
  std::string outcome(mlir::ModuleOp module, uint64_t seed, int64_t ctas);
  /// Expects that the verifier accepts the kernel, and that `runs` runs are right, with each number of CTAs in turn.
  void expectRight(uint64_t runs, llvm::ArrayRef<int64_t> ctas = {1, 2});
  /// Expects at least `least` mutations of the kernel, 95 % of which must be found with `runs` runs of the simulator.
  /// With `sparesRefused`, mutations that the verifier refuses are not simulated, because runs take long.
  Found expectFound(int64_t least, uint64_t runs, int64_t ctas, bool sparesRefused = false);

private:
  struct Tensor {
    mlir::Type element;
    llvm::SmallVector<int64_t> shape;
    std::vector<char> now, before, expected; // The latter two are empty for read-only tensors.
  };
  template <typename T> Tensor &add(const std::vector<T> &values, mlir::Type element, llvm::ArrayRef<int64_t> shape);
  std::vector<sim::Argument> arguments();
  std::vector<Tensor> tensors;
  std::vector<sim::Argument> numbers;
};

/// Returns small integers as bfloat16, -2 to 2, or -1 to 1. Sums of them and of their products are exact, so results
/// are equal bit for bit.
uint16_t wholeNumber(size_t i);
uint16_t sign(size_t i);
std::vector<uint16_t> wholeNumbers(int64_t count, size_t seed);
/// Returns the signs of factor * i + i / group.
std::vector<uint16_t> signs(int64_t count, size_t factor, size_t group);
/// The value of results before a run.
constexpr uint16_t poison = 0x7fc0;

} // namespace kpkg
#endif
