// Converts cost formulas to the manifest's format.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/PackCost.h"

using namespace llvm;

namespace kpkg::compiler {

static PackedTripCountStep packedStep(const tile::TripCountStep &step) {
  using Kind = tile::TripCountStep::Kind;
  switch (step.kind) {
  case Kind::Constant:
    return {"", {step.number}};
  case Kind::Extent:
    return {"dim", {step.number, step.dimension}};
  case Kind::Value:
    return {"value", {step.number}};
  case Kind::Grid:
    return {"grid", {step.number}};
  case Kind::Add:
    return {"+", {}};
  case Kind::Multiply:
    return {"*", {}};
  case Kind::FloorDivide:
    return {"//", {}};
  case Kind::CeilDivide:
    return {"ceildiv", {}};
  case Kind::Min:
    return {"min", {}};
  case Kind::Max:
    return {"max", {}};
  }
  llvm_unreachable("a step without a name");
}

std::vector<PackedCostTerm> packedCost(ArrayRef<tile::CostTerm> terms) {
  static constexpr const char *names[] = {"blocks", "dim", "tiles", "clip", "share", "count"};
  std::vector<PackedCostTerm> packed;
  for (const tile::CostTerm &term : terms) {
    PackedCostTerm &copy = packed.emplace_back();
    copy.count = term.count;
    for (const tile::CostFactor &factor : term.factors) {
      PackedCostFactor &packed =
          copy.factors.emplace_back(names[size_t(factor.kind)], factor.argument, factor.dimension, factor.size);
      for (const tile::TripCountStep &step : factor.steps)
        packed.steps.push_back(packedStep(step));
    }
  }
  return packed;
}

} // namespace kpkg::compiler
