// Runs the kernels of kernels/*.mlir compiled and interpreted on equal random memory, and compares all of the memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of a kernel describe its call. test.args has one string for each argument: "3x40", "3x40/1x3" with
// strides, or the value of a scalar. A list of such lists describes several calls. Optional are test.grid,
// test.tolerance (relative to 1 + |value|) and test.spread (of random floats).
#include "dialect/lower/cpu/LowerCpu.h"
#include "dialect/sim/Interpreter.h"
#include "mlir/Parser/Parser.h"
#include "test/dialect/lower/cpu/CompiledKernels.h"
#include "gtest/gtest.h"
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

using namespace mlir;
using namespace kpkg;

namespace {

struct Memory {
  std::vector<char> bytes;
  int64_t first = 0; // The byte of the element at coordinates 0.
  SmallVector<int64_t> shape, strides;
};

SmallVector<int64_t> numbers(StringRef text) {
  SmallVector<int64_t> result;
  SmallVector<StringRef> parts;
  text.split(parts, 'x', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    int64_t number = 0;
    EXPECT_FALSE(part.getAsInteger(10, number)) << text.str();
    result.push_back(number);
  }
  return result;
}

Memory makeMemory(StringRef spec, Type element, double spread, std::mt19937 &engine) {
  Memory memory;
  auto [shape, strides] = spec.split('/');
  if (shape != "scalar")
    memory.shape = numbers(shape);
  memory.strides = numbers(strides);
  if (strides.empty()) {
    memory.strides.assign(memory.shape.size(), 1);
    for (size_t dim = memory.shape.size(); dim-- > 1;)
      memory.strides[dim - 1] = memory.strides[dim] * memory.shape[dim];
  }
  int64_t low = 0, high = 0, size = sim::storageSize(element);
  for (auto [extent, stride] : llvm::zip(memory.shape, memory.strides)) {
    int64_t reach = (extent - 1) * stride;
    (reach < 0 ? low : high) += reach;
  }
  memory.first = -low * size;
  memory.bytes.resize((high - low + 1) * size);
  std::normal_distribution<double> normal(0, spread);
  std::uniform_int_distribution<int64_t> integer(-8, 8);
  for (size_t at = 0; at < memory.bytes.size(); at += size) {
    sim::Cell cell;
    if (sim::isFloat(element))
      cell.f = sim::roundTo(normal(engine), element);
    else
      cell.i = element.isInteger(1) ? integer(engine) & 1 : integer(engine);
    sim::storeCell(&memory.bytes[at], cell, element);
  }
  return memory;
}

void compareCall(tile::KernelOp kernel, ArrayAttr specs, test::CompiledKernels &compiled) {
  std::mt19937 engine(7);
  double tolerance = 0, spread = 1;
  if (auto attribute = kernel->getAttrOfType<FloatAttr>("test.tolerance"))
    tolerance = attribute.getValueAsDouble();
  if (auto attribute = kernel->getAttrOfType<FloatAttr>("test.spread"))
    spread = attribute.getValueAsDouble();
  std::array<int64_t, 3> grid = {1, 1, 1};
  if (auto attribute = kernel->getAttrOfType<ArrayAttr>("test.grid"))
    for (auto [dim, value] : llvm::enumerate(attribute.getAsRange<IntegerAttr>()))
      grid[dim] = value.getInt();

  std::vector<Memory> expected, actual;
  expected.reserve(16);
  actual.reserve(16);
  SmallVector<sim::Argument> simulated;
  test::Arguments arguments;
  ASSERT_EQ(specs.size(), kernel.getArgumentTypes().size());
  for (auto [attribute, type] : llvm::zip(specs.getAsRange<StringAttr>(), kernel.getArgumentTypes())) {
    StringRef spec = attribute.getValue();
    if (auto view = dyn_cast<tile::ViewType>(type)) {
      expected.push_back(makeMemory(spec, view.getElementType(), spread, engine));
      actual.push_back(expected.back());
      Memory &mine = actual.back(), &reference = expected.back();
      simulated.push_back(sim::View{reference.bytes.data() + reference.first, view.getElementType(), reference.shape,
                                    reference.strides, true});
      arguments.words.push_back(reinterpret_cast<int64_t>(mine.bytes.data() + mine.first));
      arguments.words.insert(arguments.words.end(), mine.shape.begin(), mine.shape.end());
      arguments.words.insert(arguments.words.end(), mine.strides.begin(), mine.strides.end());
      continue;
    }
    sim::Cell cell;
    int64_t word = 0;
    if (sim::isFloat(type)) {
      cell.f = sim::roundTo(std::stod(spec.str()), type);
      sim::storeCell(reinterpret_cast<char *>(&word), cell, type);
    } else {
      cell.i = word = std::stoll(spec.str());
    }
    simulated.push_back(cell);
    arguments.words.push_back(word);
  }
  llvm::Error error = sim::run(kernel, simulated, grid);
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  ASSERT_EQ(compiled.run(kernel.getSymName().str(), arguments, {grid[0], grid[1], grid[2]}), 0);

  size_t number = 0;
  for (auto [argument, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto view = dyn_cast<tile::ViewType>(type);
    if (!view)
      continue;
    const Memory &want = expected[number], &got = actual[number];
    ++number;
    Type element = view.getElementType();
    int64_t size = sim::storageSize(element), wrong = 0;
    for (size_t at = 0; at < want.bytes.size() && wrong < 5; at += size) {
      sim::Cell a = sim::loadCell(&want.bytes[at], element), b = sim::loadCell(&got.bytes[at], element);
      if (!sim::isFloat(element)) {
        wrong += a.i != b.i;
        EXPECT_EQ(a.i, b.i) << "argument " << argument << " element " << at / size;
        continue;
      }
      bool same =
          a.f == b.f || (std::isnan(a.f) && std::isnan(b.f)) || std::abs(a.f - b.f) <= tolerance * (1 + std::abs(a.f));
      wrong += !same;
      EXPECT_TRUE(same) << "argument " << argument << " element " << at / size << ": expected " << a.f << ", got "
                        << b.f;
    }
  }
}

class Differential : public ::testing::TestWithParam<std::string> {};

TEST_P(Differential, MatchesInterpreter) {
  std::ifstream file(std::string(KPKG_TEST_KERNELS) + "/" + GetParam() + ".mlir");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  DialectRegistry registry;
  lower::cpu::registerLoweringDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  test::CompiledKernels compiled(text);
  for (auto kernel : module->getOps<tile::KernelOp>()) {
    SCOPED_TRACE(kernel.getSymName().str());
    auto specs = kernel->getAttrOfType<ArrayAttr>("test.args");
    ASSERT_TRUE(specs);
    bool several = !specs.empty() && isa<ArrayAttr>(specs[0]);
    for (Attribute call : several ? specs.getValue() : ArrayRef<Attribute>(specs)) {
      std::string spec;
      llvm::raw_string_ostream(spec) << (several ? call : Attribute(specs));
      SCOPED_TRACE(spec);
      compareCall(kernel, several ? cast<ArrayAttr>(call) : specs, compiled);
      if (!several)
        break;
    }
  }
}

std::vector<std::string> kernelFiles() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(KPKG_TEST_KERNELS))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Differential, ::testing::ValuesIn(kernelFiles()), [](const auto &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

} // namespace
