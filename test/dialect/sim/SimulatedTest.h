// A kernel of the tile dialect through the interpreter, the pipeline for Hopper, the verifier of schedules and the simulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_SIM_SIMULATED_TEST_H
#define KPKG_TEST_SIM_SIMULATED_TEST_H

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
  static std::string simulate(mlir::ModuleOp module, llvm::ArrayRef<sim::Argument> arguments, uint64_t seed, int64_t ctas);
  std::string verify(mlir::ModuleOp module);
};

/// Small whole numbers as bfloat16, -2 to 2, or -1 to 1: sums of them and of their products are exact, so results are equal bit for bit.
uint16_t wholeNumber(size_t i);
uint16_t sign(size_t i);
std::vector<uint16_t> wholeNumbers(int64_t count, size_t seed);
/// What results are filled with before a run.
constexpr uint16_t poison = 0x7fc0;

} // namespace kpkg
#endif
