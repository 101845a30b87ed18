// Calls random kernels: memory for their arguments, runs of the interpreter, and how far results may differ.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "RandomKernel.h"
#include "dialect/sim/Interpreter.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace kpkg::sim::test {
/// One buffer per argument, with the elements around its view; empty for scalars.
using Memory = std::vector<std::vector<char>>;

/// The same bytes for the same kernel.
Memory makeMemory(const RandomKernel &kernel);

/// Runs the kernel on `memory`, in place. With `options.inDouble` floats in memory must be f64 already; see inDouble().
llvm::Error interpret(RandomKernel &kernel, Memory &memory, const Options &options);

/// The memory with every float as f64.
Memory inDouble(const RandomKernel &kernel, const Memory &memory);

/// What the kernel must leave in memory, and for each element by how much a correct result may differ from it.
class Expectation {
public:
  /// Runs the interpreter a few times: once exactly, then with what other implementations may round differently.
  static llvm::Expected<Expectation> of(RandomKernel &kernel);

  /// What is wrong with `actual`; nothing if it is a correct result. Runs the interpreter again before it complains.
  std::optional<std::string> check(RandomKernel &kernel, const Memory &actual);

  /// Runs the interpreter some more times, so that the allowed differences cover rarer coincidences.
  llvm::Error observeMore(RandomKernel &kernel);

  const Memory &exact() const { return result; }
  /// True where only ops with one correct result were used: then every bit must agree.
  bool isExact() const;
  /// By how much element `i` of argument `argument`'s buffer may differ; infinity: anything goes.
  double allowed(size_t argument, size_t i) const;

private:
  Memory result;
  std::vector<std::vector<double>> spread;

  llvm::Error widen(RandomKernel &kernel, const Options &options);
  std::optional<std::string> firstDifference(const RandomKernel &kernel, const Memory &actual) const;
};

/// The kernel and its call, readable, for reports.
std::string describe(const RandomKernel &kernel);
} // namespace kpkg::sim::test
