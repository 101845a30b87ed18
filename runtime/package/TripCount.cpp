// Evaluates trip counts of kernel loops, which are factors of cost formulas, from the numbers of a launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/TripCount.h"
#include "runtime/package/Tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace kpkg::package {

using nlohmann::json;

static constexpr size_t maxSteps = 64;
static constexpr size_t maxStack = 32;

static bool isOperation(TripCountStep::Kind kind) { return kind >= TripCountStep::Kind::Add; }

static std::optional<TripCountStep> readStep(const json &item, const Kernel &kernel) {
  using Kind = TripCountStep::Kind;
  if (item.is_number_integer())
    return TripCountStep{Kind::Constant, item.get<int64_t>()};
  if (item.is_string()) {
    static constexpr std::pair<const char *, Kind> operations[] = {
        {"+", Kind::Add},   {"*", Kind::Multiply}, {"//", Kind::FloorDivide}, {"ceildiv", Kind::CeilDivide},
        {"min", Kind::Min}, {"max", Kind::Max}};
    for (const auto &[name, kind] : operations)
      if (item.get_ref<const std::string &>() == name)
        return TripCountStep{kind};
    return std::nullopt;
  }
  bool isCall = item.is_array() && item.size() >= 2 && item[0].is_string() &&
                std::all_of(item.begin() + 1, item.end(), [](const json &i) { return i.is_number_unsigned(); });
  if (!isCall)
    return std::nullopt;
  const std::string &name = item[0].get_ref<const std::string &>();
  uint64_t first = item[1].get<uint64_t>();
  if (name == "dim" && item.size() == 3 && first < kernel.args.size() && kernel.args[first].isView) {
    uint64_t dim = item[2].get<uint64_t>();
    return dim < uint64_t(kernel.args[first].rank)
               ? std::optional(TripCountStep{Kind::Extent, int64_t(first), int32_t(dim)})
               : std::nullopt;
  }
  if (name == "value" && item.size() == 2 && first < kernel.args.size() && !kernel.args[first].isView)
    return TripCountStep{Kind::Value, int64_t(first)};
  if (name == "grid" && item.size() == 2 && first < 3)
    return TripCountStep{Kind::Grid, int64_t(first)};
  return std::nullopt;
}

std::vector<TripCountStep> readTripCount(const json &factor, const Kernel &kernel, std::string &why) {
  std::vector<TripCountStep> steps;
  size_t onStack = 0;
  if (factor.size() < 2 || factor.size() > maxSteps + 1) {
    why = "has a count of no steps, or of more than " + std::to_string(maxSteps);
    return {};
  }
  for (size_t i = 1; i < factor.size(); ++i) {
    std::optional<TripCountStep> step = readStep(factor[i], kernel);
    if (!step) {
      why = "has a count with the step " + factor[i].dump() + ", which is none";
      return {};
    }
    if (isOperation(step->kind) ? onStack < 2 : onStack == maxStack) {
      why = "has a count whose step " + factor[i].dump() + " finds too few or too many numbers";
      return {};
    }
    onStack += isOperation(step->kind) ? size_t(-1) : 1;
    steps.push_back(*step);
  }
  if (onStack == 1)
    return steps;
  why = "has a count that leaves " + std::to_string(onStack) + " numbers";
  return {};
}

static double operate(TripCountStep::Kind kind, double a, double b) {
  switch (kind) {
  case TripCountStep::Kind::Add:
    return a + b;
  case TripCountStep::Kind::Multiply:
    return a * b;
  case TripCountStep::Kind::FloorDivide:
    return b > 0 ? std::floor(a / b) : 0;
  case TripCountStep::Kind::CeilDivide:
    return b > 0 ? std::ceil(a / b) : 0;
  case TripCountStep::Kind::Min:
    return std::min(a, b);
  default:
    return std::max(a, b);
  }
}

std::optional<double> evaluate(const std::vector<TripCountStep> &steps, const plan::LaunchStep &launch) {
  std::array<double, maxStack> stack;
  size_t size = 0;
  for (const TripCountStep &step : steps) {
    switch (step.kind) {
    case TripCountStep::Kind::Constant:
      stack[size++] = double(step.number);
      break;
    case TripCountStep::Kind::Extent:
      stack[size++] = double(launch.args[size_t(step.number)].view.shape[size_t(step.dim)]);
      break;
    case TripCountStep::Kind::Value:
      if (launch.args[size_t(step.number)].kind != plan::LaunchArg::Kind::Int)
        return std::nullopt;
      stack[size++] = double(launch.args[size_t(step.number)].integer);
      break;
    case TripCountStep::Kind::Grid:
      stack[size++] = double(launch.grid[size_t(step.number)]);
      break;
    default:
      stack[size - 2] = operate(step.kind, stack[size - 2], stack[size - 1]);
      --size;
    }
  }
  return std::max(stack[0], 0.0);
}

} // namespace kpkg::package
