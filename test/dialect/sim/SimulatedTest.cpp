// Runs kernels through the interpreter, the pipeline for Hopper, the schedule verifier and the simulator, and compares
// results.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"
#include "dialect/pipeline/GpuPipeline.h"
#include "dialect/pipeline/Registration.h"
#include "dialect/sim/Interpreter.h"
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

OwningOpRef<ModuleOp> SimulatedTest::parse(llvm::StringRef source) {
  return parseSourceString<ModuleOp>(source, &context);
}

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

sim::View SimulatedTest::view(std::vector<uint16_t> &data, ArrayRef<int64_t> shape) {
  return view(data.data(), BFloat16Type::get(&context), shape);
}

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

template <typename T>
ComparedTest::Tensor &ComparedTest::add(const std::vector<T> &values, Type element, ArrayRef<int64_t> shape) {
  auto *bytes = reinterpret_cast<const char *>(values.data());
  return tensors.emplace_back(
      Tensor{element, llvm::to_vector(shape), std::vector<char>(bytes, bytes + values.size() * sizeof(T)), {}, {}});
}

void ComparedTest::reads(const std::vector<uint16_t> &values, ArrayRef<int64_t> shape) {
  add(values, BFloat16Type::get(&context), shape);
}

void ComparedTest::reads(const std::vector<float> &values, ArrayRef<int64_t> shape) {
  add(values, Float32Type::get(&context), shape);
}

void ComparedTest::writes(ArrayRef<int64_t> shape) {
  Tensor &tensor =
      add(std::vector<uint16_t>(size_t(llvm::product_of(shape)), poison), BFloat16Type::get(&context), shape);
  tensor.before = tensor.now;
}

void ComparedTest::writes(ArrayRef<int64_t> shape, float before) {
  Tensor &tensor = add(std::vector<float>(size_t(llvm::product_of(shape)), before), Float32Type::get(&context), shape);
  tensor.before = tensor.now;
}

void ComparedTest::takes(int64_t number) { numbers.push_back(sim::Cell{.i = number}); }

std::vector<sim::Argument> ComparedTest::arguments() {
  std::vector<sim::Argument> all;
  for (Tensor &tensor : tensors)
    all.push_back(view(tensor.now.data(), tensor.element, tensor.shape));
  llvm::append_range(all, numbers);
  return all;
}

void ComparedTest::prepare(llvm::StringRef source) {
  module = parse(source);
  ASSERT_TRUE(module);
  ASSERT_EQ(interpret(*module, arguments()), "");
  for (Tensor &tensor : tensors)
    if (!tensor.before.empty())
      tensor.expected = tensor.now;
  compile(*module);
}

std::string ComparedTest::outcome(ModuleOp module, uint64_t seed, int64_t ctas) {
  for (Tensor &tensor : tensors)
    if (!tensor.before.empty())
      tensor.now = tensor.before;
  std::string wrong = simulate(module, arguments(), seed, ctas);
  if (!wrong.empty())
    return wrong;
  bool isRight = llvm::all_of(
      tensors, [](const Tensor &tensor) { return tensor.expected.empty() || tensor.now == tensor.expected; });
  return isRight ? "" : "the result is wrong";
}

void ComparedTest::expectRight(uint64_t runs, ArrayRef<int64_t> ctas) {
  EXPECT_EQ(verify(*module), "");
  for (uint64_t seed = 0; seed < runs; ++seed)
    EXPECT_EQ(outcome(*module, seed, ctas[seed % ctas.size()]), "") << "seed " << seed;
}

Found ComparedTest::expectFound(int64_t least, uint64_t runs, int64_t ctas, bool sparesRefused) {
  bool refused = false;
  auto isRefused = [&](ModuleOp copy) { return refused = !verify(copy).empty(); };
  auto isSeen = [&](ModuleOp copy) {
    bool seen = false;
    for (uint64_t seed = 0; seed < runs && !seen && !(refused && sparesRefused); ++seed)
      seen = !outcome(copy, seed, ctas).empty();
    return seen;
  };
  Found found = search(*module, isRefused, isSeen);
  EXPECT_GE(found.count, least);
  EXPECT_GE(found.either * 100, found.count * 95) << "missed:" << found.missed;
  return found;
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

std::vector<uint16_t> signs(int64_t count, size_t factor, size_t group) {
  std::vector<uint16_t> values;
  for (size_t i = 0; i < size_t(count); ++i)
    values.push_back(sign(factor * i + i / group));
  return values;
}

} // namespace kpkg
