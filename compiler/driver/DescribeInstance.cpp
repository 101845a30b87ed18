// Describes an instance for the manifest: facts, dtypes, cost.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/DescribeInstance.h"
#include "compiler/driver/DropAlternatives.h"
#include "compiler/driver/PackCost.h"
#include "dialect/tile/transforms/Cost.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// Returns the facts in the kernel's argument types.
std::vector<PackedFact> factsOf(tile::KernelOp kernel) {
  std::vector<PackedFact> facts;
  for (auto [i, type] : enumerate(kernel.getArgumentTypes()))
    if (auto view = mlir::dyn_cast<tile::ViewType>(type); view && view.getFacts() != tile::ViewFacts()) {
      tile::ViewFacts known = view.getFacts();
      facts.push_back({unsigned(i), known.unit, known.align, known.divisible, known.index, known.outer});
    }
  return facts;
}

std::vector<std::string> dtypesOf(const hir::Function &kernel) {
  std::vector<std::string> dtypes;
  for (const hir::FunctionParameter &parameter : kernel.parameters)
    dtypes.emplace_back(valueNameOf(parameter.type->element));
  return dtypes;
}

/// Returns whether results are deterministic. Float sums depend on the order in which blocks add to them.
bool isDeterministic(tile::KernelOp kernel) {
  mlir::WalkResult found = kernel.getBody().walk([](mlir::Operation *op) {
    auto atomic = dyn_cast<tile::AtomicOp>(op);
    auto adds = dyn_cast<tile::AddStoreOp>(op);
    bool sumsFloats = (atomic && atomic.getKind() == tile::AtomicKind::Add &&
                       isa<mlir::FloatType>(atomic.getView().getType().getElementType())) ||
                      (adds && isa<mlir::FloatType>(adds.getView().getType().getElementType()));
    return sumsFloats ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return !found.wasInterrupted();
}

} // namespace

PackedInstance describeInstance(tile::KernelOp kernel, const Program &program, InstanceRef instance) {
  PackedInstance packed;
  packed.kernel = instance.kernel;
  packed.parameters = program.kernels()[instance.kernel].instances[instance.instance].parameters;
  packed.variant = kernel.getVariant().value_or("any").str();
  packed.symbol = kernel.getSymName().str();
  packed.facts = factsOf(kernel);
  packed.dtypes = dtypesOf(*program.kernel(instance.kernel, instance.instance));
  packed.isDeterministic = isDeterministic(kernel);
  if (std::optional<tile::Cost> cost = tile::estimateCost(kernel)) {
    packed.flops = packedCost(cost->flops);
    packed.bytes = packedCost(cost->bytes);
  }
  if (std::optional<tile::CostTerm> tiles = tile::countTiles(kernel))
    packed.tiles = packedCost(*tiles);
  if (hasAlternatives(program.kernels()[instance.kernel]))
    if (auto flops = tile::estimateTileFlops(kernel); flops && (!kernel.isPersistent() || !packed.tiles.empty()))
      packed.work.emplace().flops = packedCost(*flops);
  return packed;
}

} // namespace kpkg::compiler
