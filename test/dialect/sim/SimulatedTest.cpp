// A kernel of the tile dialect through the interpreter, the pipeline for Hopper, the verifier of schedules and the simulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"
#include "dialect/pipeline/GpuPipeline.h"
#include "dialect/pipeline/Registration.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <array>
#include <cstring>

using namespace mlir;

namespace kpkg {

static DialectRegistry allDialects() {
  DialectRegistry all;
  registerDialects(all);
  return all;
}

SimulatedTest::SimulatedTest() : context(allDialects(), MLIRContext::Threading::DISABLED) {}

OwningOpRef<ModuleOp> SimulatedTest::parse(llvm::StringRef source) { return parseSourceString<ModuleOp>(source, &context); }

void SimulatedTest::compile(ModuleOp module) {
  PassManager passes(&context);
  buildGpuPipeline(passes, "sm_90a", 0);
  ASSERT_TRUE(succeeded(passes.run(module)));
}

sim::View SimulatedTest::view(void *data, Type element, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;)
    strides[d] = strides[d + 1] * shape[d + 1];
  return {static_cast<char *>(data), element, llvm::to_vector(shape), llvm::to_vector(strides)};
}

sim::View SimulatedTest::view(std::vector<uint16_t> &data, ArrayRef<int64_t> shape) { return view(data.data(), BFloat16Type::get(&context), shape); }

std::string SimulatedTest::interpret(ModuleOp module, ArrayRef<sim::Argument> arguments) {
  return llvm::toString(sim::run(kernelOf(module), arguments, {1, 1, 1}));
}

std::string SimulatedTest::simulate(ModuleOp module, ArrayRef<sim::Argument> arguments, uint64_t seed, int64_t ctas) {
  sim::AsyncOptions options;
  options.seed = seed;
  options.maxSteps = 1 << 24;
  return llvm::toString(sim::simulate(kernelOf(module), arguments, {ctas, 1, 1}, options));
}

std::string SimulatedTest::verify(ModuleOp module) {
  std::string text;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { text += diagnostic.str() + "\n"; });
  PassManager passes(&context);
  passes.enableVerifier(false);
  passes.addNestedPass<tile::KernelOp>(kgpu::createKgpuVerifySchedule());
  return succeeded(passes.run(module)) ? "" : text;
}

uint16_t wholeNumber(size_t i) {
  float value = float(int64_t(i * 7919 % 5) - 2);
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return uint16_t(bits >> 16);
}

uint16_t sign(size_t i) { return uint16_t(std::array{0xbf80, 0, 0x3f80}[i * 7919 % 65521 % 3]); }

std::vector<uint16_t> wholeNumbers(int64_t count, size_t seed) {
  std::vector<uint16_t> values;
  for (size_t i = seed; i < seed + size_t(count); ++i)
    values.push_back(wholeNumber(i * i));
  return values;
}

} // namespace kpkg
