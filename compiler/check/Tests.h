// Declares the tests of ops that sources register with `@register.test`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace kpkg::compiler {

class Program;

/// A call of the op: an instance of the test's function.
struct TestCase {
  /// "scale_cases[T=float32, N=3]"
  std::string title;
  /// Arguments as `kpkg run --input` takes them: "x=randn(3,float32)".
  std::vector<std::string> inputs;
};

struct TestRecord {
  /// The op's name.
  std::string op;
  std::vector<TestCase> cases;
  /// The largest error, as a part of the largest element. Empty: estimated by the number of operations.
  std::optional<double> tolerance;
};

/// Returns the tests of a loaded program without errors, in source order.
const std::vector<TestRecord> &testsOf(const Program &program);

} // namespace kpkg::compiler
