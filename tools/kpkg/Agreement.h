// Compares an op's results with those of its reference.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kpkg::command {

/// Returns the floating-point operations of the call by the package's estimate; 0 if it has none.
double estimatedFlops(const Op &op, const std::vector<Named> &named);

/// Returns the allowed error relative to the largest reference value. It is some unit round-offs of the result, plus
/// those of a float32 sum (float64 for a float64 result). The latter grow with the square root of the number of
/// operations per element.
double allowedError(const Tensor &result, double flops);

/// Returns a problem of a host tensor: "has shape [2], the reference's [3]", "at [0, 3]: got 1.5, expected 1"; empty if
/// it agrees.
std::string disagreement(const Tensor &actual, const Tensor &expected, double flops,
                         std::optional<double> tolerance = std::nullopt);

/// The largest errors of results, over all elements that are finite on both sides.
struct Errors {
  /// In units in the last place of the reference's element, at least of the smallest normal number; 0 for integers.
  double ulps = 0;
  double absolute = 0;
  /// Relative to the largest magnitude in the reference's tensor.
  double relative = 0;

  /// Adds errors of tensors with equal shape and dtype; others are ignored.
  void add(const Tensor &actual, const Tensor &expected);
  void include(const Errors &other);
};

/// Returns whether two host tensors have one dtype, one shape and the same bits.
bool sameBits(const Tensor &a, const Tensor &b);

} // namespace kpkg::command
