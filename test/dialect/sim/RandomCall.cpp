// Fills the memory of random calls, and computes the interval of results of perturbed interpreter runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomCall.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;
using namespace kpkg::sim::test;

static const ViewArgument *viewOf(const RandomKernel &kernel, size_t argument) {
  return std::get_if<ViewArgument>(&kernel.arguments[argument]);
}

static Cell randomCell(Type element, bool special, std::mt19937_64 &random) {
  if (!isFloat(element)) {
    auto bits = static_cast<int64_t>(random());
    return Cell{.i = wrapTo(random() % 3 ? bits % 20 : bits, element)};
  }
  if (special && random() % 6 == 0) {
    double specials[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0};
    return Cell{.f = roundTo(specials[random() % 5], element)};
  }
  return Cell{.f = roundTo(static_cast<double>(random() % 4001) / 1000 - 2, element)};
}

Memory kpkg::sim::test::makeMemory(const RandomKernel &kernel) {
  std::mt19937_64 random(kernel.seed);
  Memory memory(kernel.arguments.size());
  for (size_t a = 0; a < memory.size(); ++a) {
    const ViewArgument *view = viewOf(kernel, a);
    if (!view)
      continue;
    Type element = view->type.getElementType();
    memory[a].resize(view->count * storageSize(element));
    for (int64_t i = 0; i < view->count; ++i)
      storeCell(&memory[a][i * storageSize(element)], randomCell(element, kernel.hasSpecialValues, random), element);
  }
  return memory;
}

Memory kpkg::sim::test::inDouble(const RandomKernel &kernel, const Memory &memory) {
  Memory wide(memory.size());
  Type f64 = Float64Type::get(kernel.kernel->getContext());
  for (size_t a = 0; a < memory.size(); ++a) {
    const ViewArgument *view = viewOf(kernel, a);
    if (!view || !isFloat(view->type.getElementType())) {
      wide[a] = memory[a];
      continue;
    }
    wide[a].resize(view->count * 8);
    for (int64_t i = 0; i < view->count; ++i)
      storeCell(&wide[a][i * 8],
                loadCell(&memory[a][i * storageSize(view->type.getElementType())], view->type.getElementType()), f64);
  }
  return wide;
}

llvm::Error kpkg::sim::test::interpret(RandomKernel &kernel, Memory &memory, const Options &options) {
  std::vector<Argument> arguments;
  for (size_t a = 0; a < memory.size(); ++a) {
    if (const ViewArgument *view = viewOf(kernel, a)) {
      Type element = view->type.getElementType();
      Type storage = options.inDouble && isFloat(element) ? Float64Type::get(element.getContext()) : element;
      arguments.push_back(
          View{memory[a].data() + view->offset * storageSize(storage), storage, view->shape, view->strides});
    } else {
      arguments.push_back(std::get<ScalarArgument>(kernel.arguments[a]).value);
    }
  }
  return run(kernel.kernel, arguments, kernel.grid, options);
}

/// Returns the distance from `a` to `b`. It is 0 only for the same value (including the sign of zero), and infinity for
/// values of different kinds.
static double distance(Cell a, Cell b, Type element) {
  if (!isFloat(element))
    return a.i == b.i ? 0 : INFINITY;
  if (std::isnan(a.f) && std::isnan(b.f))
    return 0;
  if (a.f == b.f)
    return std::signbit(a.f) == std::signbit(b.f) ? 0 : std::numeric_limits<double>::denorm_min();
  double difference = std::abs(a.f - b.f);
  return std::isnan(difference) ? INFINITY : difference;
}

llvm::Error Expectation::widen(RandomKernel &kernel, const Options &options) {
  Memory other = makeMemory(kernel);
  if (llvm::Error failed = interpret(kernel, other, options))
    return failed;
  for (size_t a = 0; a < other.size(); ++a) {
    const ViewArgument *view = viewOf(kernel, a);
    for (size_t i = 0; view && i < spread[a].size(); ++i) {
      Type element = view->type.getElementType();
      int64_t size = storageSize(element);
      double moved = distance(loadCell(&result[a][i * size], element), loadCell(&other[a][i * size], element), element);
      spread[a][i] = std::max(spread[a][i], moved);
    }
  }
  return llvm::Error::success();
}

llvm::Expected<Expectation> Expectation::of(RandomKernel &kernel) {
  Expectation expectation;
  expectation.result = makeMemory(kernel);
  if (llvm::Error failed = interpret(kernel, expectation.result, {}))
    return failed;
  for (size_t a = 0; a < kernel.arguments.size(); ++a)
    expectation.spread.emplace_back(viewOf(kernel, a) ? viewOf(kernel, a)->count : 0, 0.0);
  Options options;
  using enum Perturbation;
  using enum SumOrder;
  for (auto [perturbation, order] : {std::pair(Up, Forward), {Down, Backward}, {Random, Pairwise}, {Random, Forward}}) {
    options.perturbation = perturbation;
    options.sumOrder = order;
    ++options.perturbationSeed;
    if (llvm::Error failed = expectation.widen(kernel, options))
      return failed;
  }
  return expectation;
}

bool Expectation::isExact() const {
  return llvm::all_of(
      spread, [](const std::vector<double> &line) { return llvm::all_of(line, [](double s) { return s == 0; }); });
}

double Expectation::allowed(size_t argument, size_t i) const {
  // A few runs show only a part of the effects of rounding.
  return 4 * spread[argument][i];
}

std::optional<std::string> Expectation::firstDifference(const RandomKernel &kernel, const Memory &actual) const {
  for (size_t a = 0; a < actual.size(); ++a) {
    const ViewArgument *view = viewOf(kernel, a);
    for (size_t i = 0; view && i < spread[a].size(); ++i) {
      Type element = view->type.getElementType();
      int64_t size = storageSize(element);
      Cell want = loadCell(&result[a][i * size], element), have = loadCell(&actual[a][i * size], element);
      if (distance(want, have, element) <= allowed(a, i))
        continue;
      std::string text;
      llvm::raw_string_ostream stream(text);
      stream << "argument " << a << ", element " << i << " of its buffer (view starts at " << view->offset << "): ";
      if (isFloat(element))
        stream << llvm::format("%.9g, not %.9g; up to %.3g away is correct", have.f, want.f, allowed(a, i));
      else
        stream << have.i << ", not " << want.i;
      return text;
    }
  }
  return std::nullopt;
}

llvm::Error Expectation::observeMore(RandomKernel &kernel) {
  Options options;
  options.perturbation = Perturbation::Random;
  for (int round = 0; round < 24; ++round) {
    options.perturbationSeed = 100 + round;
    options.sumOrder = static_cast<SumOrder>(round % 3);
    if (llvm::Error failed = widen(kernel, options))
      return failed;
  }
  return llvm::Error::success();
}

std::optional<std::string> Expectation::check(RandomKernel &kernel, const Memory &actual) {
  if (!firstDifference(kernel, actual))
    return std::nullopt;
  if (llvm::Error failed = observeMore(kernel))
    return llvm::toString(std::move(failed));
  return firstDifference(kernel, actual);
}

std::string kpkg::sim::test::describe(const RandomKernel &kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "// seed " << kernel.seed << ", grid " << kernel.grid[0] << "x" << kernel.grid[1] << "x" << kernel.grid[2]
         << "\n";
  for (auto [a, argument] : llvm::enumerate(kernel.arguments)) {
    stream << "// argument " << a << ": ";
    if (const ViewArgument *view = viewOf(kernel, a)) {
      stream << view->type << " shape [";
      llvm::interleaveComma(view->shape, stream);
      stream << "] strides [";
      llvm::interleaveComma(view->strides, stream);
      stream << "] offset " << view->offset << " of " << view->count << "\n";
    } else {
      const auto &scalar = std::get<ScalarArgument>(argument);
      stream << scalar.type << " ";
      if (isFloat(scalar.type))
        stream << llvm::format("%.9g\n", scalar.value.f);
      else
        stream << scalar.value.i << "\n";
    }
  }
  kernel.kernel->print(stream);
  stream << "\n";
  return text;
}
