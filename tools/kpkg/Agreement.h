// When an op's results agree with its reference's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kpkg::command {

/// Floating-point operations of the call by the package's own estimate; 0 where it has none.
double estimatedFlops(const Op &op, const std::vector<Named> &named);

/// The error that a comparison with the reference accepts, relative to the largest reference value: some unit roundoffs
/// of the result, and those of a float32 sum (float64 of a float64 result), which grow with the root of the number of
/// operations behind an element.
double allowedError(const Tensor &result, double flops);

/// What is wrong with a host tensor: "has shape [2], the reference's [3]", "at [0, 3]: got 1.5, expected 1"; empty
/// where it agrees.
std::string disagreement(const Tensor &actual, const Tensor &expected, double flops);

/// The largest errors of results, over all elements that are finite on both sides.
struct Errors {
  /// In units in the last place of the reference's element, at least of the smallest normal number; 0 of integers.
  double ulps = 0;
  double absolute = 0;
  /// Of the largest magnitude in the reference's tensor.
  double relative = 0;

  /// Tensors of one shape and dtype; others count nothing.
  void add(const Tensor &actual, const Tensor &expected);
  void include(const Errors &other);
};

/// Whether two host tensors have one dtype, one shape and the same bits.
bool sameBits(const Tensor &a, const Tensor &b);

} // namespace kpkg::command
