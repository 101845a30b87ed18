// Calls random kernels: memory for their arguments, runs of the interpreter, and tolerances of results.
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

/// Returns the same bytes for the same kernel.
Memory makeMemory(const RandomKernel &kernel);

/// Runs the kernel on `memory`, in place. With `options.inDouble`, floats in memory must be f64 already; see
/// inDouble().
llvm::Error interpret(RandomKernel &kernel, Memory &memory, const Options &options);

/// Returns the memory with every float as f64.
Memory inDouble(const RandomKernel &kernel, const Memory &memory);

/// The memory that the kernel must leave, and the tolerance of each element.
class Expectation {
public:
  /// Runs the interpreter a few times: once exactly, then with perturbations that other implementations may cause.
  static llvm::Expected<Expectation> of(RandomKernel &kernel);

  /// Returns an error in `actual`, or nothing if it is a correct result. Runs the interpreter again before it reports
  /// an error.
  std::optional<std::string> check(RandomKernel &kernel, const Memory &actual);

  /// Runs the interpreter more times, so that the tolerances cover rarer coincidences.
  llvm::Error observeMore(RandomKernel &kernel);

  const Memory &exact() const { return result; }
  /// Returns whether only ops with one correct result were used, so that every bit must agree.
  bool isExact() const;
  /// Returns the tolerance of element `i` of argument `argument`'s buffer. Infinity allows any value.
  double allowed(size_t argument, size_t i) const;

private:
  Memory result;
  std::vector<std::vector<double>> spread;

  llvm::Error widen(RandomKernel &kernel, const Options &options);
  std::optional<std::string> firstDifference(const RandomKernel &kernel, const Memory &actual) const;
};

/// Describes the kernel and its call for reports.
std::string describe(const RandomKernel &kernel);
} // namespace kpkg::sim::test
