// Tolerances of comparisons, and the first element that is beyond them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Agreement.h"
#include "tools/kpkg/Elements.h"
#include "tools/kpkg/Report.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace kpkg::command {

double estimatedFlops(const Op &op, const std::vector<Named> &named) {
  auto text = op.explain({}, named, KPKG_JSON);
  return text ? nlohmann::json::parse(*text).value("flops", 0.0) : 0.0;
}

double allowedError(const Tensor &result, double flops) {
  constexpr double Roundings = 32;
  double accumulator = unitRoundoff(result.dtype() == DType::Float64 ? DType::Float64 : DType::Float32);
  double perElement = flops / double(std::max<int64_t>(result.elements(), 1));
  return Roundings * unitRoundoff(result.dtype()) + std::sqrt(perElement) * accumulator;
}

namespace {

std::vector<double> elementsOf(const Tensor &tensor) {
  std::vector<double> values;
  values.reserve(size_t(tensor.elements()));
  forEachElement(tensor, [&](void *address) { values.push_back(readElement(tensor.dtype(), address)); });
  return values;
}

/// The index in each dimension of an element, counted with the last dimension fastest.
std::vector<int64_t> indexOf(size_t element, const std::vector<int64_t> &shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    index[dim] = int64_t(element % size_t(shape[dim]));
    element /= size_t(shape[dim]);
  }
  return index;
}

} // namespace

std::string disagreement(const Tensor &actual, const Tensor &expected, double flops) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape())
    return fmt::format("is {}, the reference's is {}", describe(actual), describe(expected));
  Difference difference = compare(actual, expected);
  double limit = allowedError(actual, flops);
  if (actual.dtype() == DType::None || difference.within(limit))
    return "";
  std::vector<double> found = elementsOf(actual), wanted = elementsOf(expected);
  for (size_t i = 0; i < found.size(); ++i) {
    bool isSame = found[i] == wanted[i] || (std::isnan(found[i]) && std::isnan(wanted[i]));
    if (!isSame && !(std::abs(found[i] - wanted[i]) <= limit * difference.scale))
      return fmt::format("at [{}]: got {:.9g}, expected {:.9g}", fmt::join(indexOf(i, actual.shape()), ", "), found[i],
                         wanted[i]);
  }
  return "differs";
}

} // namespace kpkg::command
