// Computes tolerances of comparisons, and finds the first element beyond them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Agreement.h"
#include "tools/kpkg/Elements.h"
#include "tools/kpkg/Report.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
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

/// Returns the index in each dimension of an element, counted with the last dimension fastest.
std::vector<int64_t> indexOf(size_t element, const std::vector<int64_t> &shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    index[dim] = int64_t(element % size_t(shape[dim]));
    element /= size_t(shape[dim]);
  }
  return index;
}

} // namespace

std::string disagreement(const Tensor &actual, const Tensor &expected, double flops, std::optional<double> tolerance) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape())
    return fmt::format("is {}, the reference's is {}", describe(actual), describe(expected));
  Difference difference = compare(actual, expected);
  double limit = tolerance.value_or(allowedError(actual, flops));
  if (actual.dtype() == DType::None || difference.within(limit))
    return "";
  std::vector<double> found = elementsOf(actual), wanted = elementsOf(expected);
  auto say = [&](size_t i) {
    return fmt::format("at [{}]: got {:.9g}, expected {:.9g}", fmt::join(indexOf(i, actual.shape()), ", "), found[i],
                       wanted[i]);
  };
  size_t count = 0, first = 0, worst = 0;
  double largest = -1;
  for (size_t i = 0; i < found.size(); ++i) {
    bool isSame = found[i] == wanted[i] || (std::isnan(found[i]) && std::isnan(wanted[i]));
    double error = std::abs(found[i] - wanted[i]);
    if (isSame || error <= limit * difference.scale)
      continue;
    if (count++ == 0)
      first = i;
    if (double weight = std::isnan(error) ? std::numeric_limits<double>::infinity() : error; weight > largest) {
      largest = weight;
      worst = i;
    }
  }
  if (count == 0)
    return "differs";
  std::string text = say(first);
  if (count > 1)
    text += fmt::format("; {} of {} elements are wrong{}", count, found.size(),
                        worst == first ? ", this one most" : ", most " + say(worst));
  return text;
}

/// Returns the unit in the last place of `value`, at least that of the smallest normal number.
static double ulpOf(DType dtype, double value) {
  int smallest = 2 - (1 << (dtypeRecord(dtype).exponentBits - 1));
  int exponent = value == 0 ? smallest : std::max(std::ilogb(value), smallest);
  return std::ldexp(2 * unitRoundoff(dtype), exponent);
}

void Errors::add(const Tensor &actual, const Tensor &expected) {
  if (actual.dtype() == DType::None || actual.dtype() != expected.dtype() || actual.shape() != expected.shape())
    return;
  std::vector<double> found = elementsOf(actual), wanted = elementsOf(expected);
  double largest = 0, scale = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!std::isfinite(found[i]) || !std::isfinite(wanted[i]))
      continue;
    double error = std::abs(found[i] - wanted[i]);
    largest = std::max(largest, error);
    scale = std::max(scale, std::abs(wanted[i]));
    if (unitRoundoff(actual.dtype()) > 0)
      ulps = std::max(ulps, error / ulpOf(actual.dtype(), wanted[i]));
  }
  absolute = std::max(absolute, largest);
  relative = std::max(relative, scale > 0 ? largest / scale : largest);
}

void Errors::include(const Errors &other) {
  ulps = std::max(ulps, other.ulps);
  absolute = std::max(absolute, other.absolute);
  relative = std::max(relative, other.relative);
}

bool sameBits(const Tensor &a, const Tensor &b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape())
    return false;
  if (a.dtype() == DType::None)
    return true;
  const auto size = size_t(dtypeBytes(a.dtype()));
  auto bytesOf = [&](const Tensor &tensor) {
    std::string bytes;
    forEachElement(tensor, [&](void *address) { bytes.append(static_cast<const char *>(address), size); });
    return bytes;
  };
  return bytesOf(a) == bytesOf(b);
}

} // namespace kpkg::command
