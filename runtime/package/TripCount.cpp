// Evaluates trip counts of kernel loops, which are factors of cost formulas, from the numbers of a launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/TripCount.h"
#include "runtime/package/Tables.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kpkg::package {

static constexpr size_t maxStack = 32;

static bool isOperation(TripCountStep::Kind kind) { return kind >= TripCountStep::Kind::Add; }

/// Returns whether the launch has the number that a step pushes.
static bool isKnown(const TripCountStep &step, const Kernel &kernel) {
  switch (step.kind) {
  case TripCountStep::Kind::Extent:
  case TripCountStep::Kind::Value: {
    bool isExtent = step.kind == TripCountStep::Kind::Extent;
    if (uint64_t(step.number) >= kernel.args.size())
      return false;
    const KernelArgument &argument = kernel.args[size_t(step.number)];
    return isView(argument) == isExtent && (!isExtent || step.dimension < uint32_t(argument.rank));
  }
  case TripCountStep::Kind::Grid:
    return uint64_t(step.number) < 3;
  default:
    return true;
  }
}

std::string checkTripCount(const std::vector<TripCountStep> &steps, const Kernel &kernel) {
  size_t onStack = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!isKnown(steps[i], kernel))
      return "has a count whose step " + std::to_string(i + 1) + " is no number of a launch";
    if (isOperation(steps[i].kind) ? onStack < 2 : onStack == maxStack)
      return "has a count whose step " + std::to_string(i + 1) + " finds too few or too many numbers";
    onStack += isOperation(steps[i].kind) ? size_t(-1) : 1;
  }
  return onStack == 1 ? "" : "has a count that leaves " + std::to_string(onStack) + " numbers";
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
      stack[size++] = double(launch.args[size_t(step.number)].view.shape[step.dimension]);
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
