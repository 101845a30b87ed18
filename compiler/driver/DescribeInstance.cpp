// Describes an instance for the manifest: facts, dtypes, cost.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/DescribeInstance.h"
#include "compiler/driver/DropAlternatives.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "dialect/tile/transforms/Cost.h"

#include "mlir/IR/TypeUtilities.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// Returns the facts in the kernel's argument types.
std::vector<manifest::Fact> factsOf(tile::KernelOp kernel) {
  std::vector<manifest::Fact> facts;
  for (auto [i, type] : enumerate(kernel.getArgumentTypes()))
    if (auto view = mlir::dyn_cast<tile::ViewType>(type); view && view.getFacts() != tile::ViewFacts()) {
      tile::ViewFacts known = view.getFacts();
      facts.push_back(
          {int32_t(i), int32_t(known.unit), known.align, known.divisible, int32_t(known.index), int32_t(known.outer)});
    }
  return facts;
}

/// Returns the dtypes of a kernel's `arguments`, of which the last ones may be shadows.
std::vector<std::string> dtypesOf(const hir::Function &kernel, size_t arguments) {
  std::vector<std::string> dtypes;
  for (const hir::FunctionParameter &parameter : kernel.parameters)
    dtypes.emplace_back(valueNameOf(parameter.type->element));
  dtypes.resize(arguments, "int32"); // shadows
  return dtypes;
}

/// Returns whether the result of an update depends on the order in which blocks update an element. Sums of integers,
/// maxima and minima do not, but what an update finds does.
template <class Update> bool dependsOnOrder(Update update) {
  mlir::Value old = update.getOld();
  if (old && !old.use_empty())
    return true;
  switch (update.getKind()) {
  case tile::AtomicKind::Add:
    return mlir::isa<mlir::FloatType>(update.getView().getType().getElementType());
  case tile::AtomicKind::Exchange:
  case tile::AtomicKind::CompareExchange:
    return true;
  case tile::AtomicKind::Max:
  case tile::AtomicKind::Min:
  case tile::AtomicKind::UMax:
  case tile::AtomicKind::UMin:
    return false;
  }
  llvm_unreachable("all kinds are listed");
}

/// Returns whether results are deterministic: no update depends on the order of blocks.
bool isDeterministic(tile::KernelOp kernel) {
  mlir::WalkResult found = kernel.getBody().walk([](mlir::Operation *op) {
    auto atomic = dyn_cast<tile::AtomicOp>(op);
    auto element = dyn_cast<tile::AtomicElementOp>(op);
    auto adds = dyn_cast<tile::AddStoreOp>(op);
    bool depends = (atomic && dependsOnOrder(atomic)) || (element && dependsOnOrder(element)) ||
                   (adds && mlir::isa<mlir::FloatType>(adds.getView().getType().getElementType()));
    return depends ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return !found.wasInterrupted();
}

/// Returns whether a value is a float or a tile of floats.
bool isFloat(mlir::Type type) { return mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type)); }

/// Returns whether rounding cannot depend on how work is divided, since no float is the sum or product of many others.
/// Loops that carry floats, and threads that exchange values, may compute such sums.
bool isBatchInvariant(tile::KernelOp kernel) {
  mlir::WalkResult found = kernel.getBody().walk([](mlir::Operation *op) {
    bool adds = mlir::isa<tile::DotOp, tile::CombineOp, tile::ScanOp, tile::AtomicOp, tile::AtomicElementOp,
                          tile::AddStoreOp, tile::ScratchOp, tile::BarrierOp, tile::ShuffleOp, tile::ThreadMmaOp>(op);
    if (auto reduce = dyn_cast<tile::ReduceOp>(op))
      adds = isFloat(reduce.getResult().getType()) &&
             (reduce.getKind() == tile::ReduceKind::Sum || reduce.getKind() == tile::ReduceKind::Prod);
    for (mlir::Region &region : op->getRegions())
      for (mlir::BlockArgument argument : region.getArguments())
        adds |= isFloat(argument.getType());
    return adds ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return !found.wasInterrupted();
}

} // namespace

PackedInstance describeInstance(tile::KernelOp kernel, const Program &program, InstanceRef instance) {
  PackedInstance packed;
  packed.kernel = uint32_t(instance.kernel);
  packed.parameters = program.kernels()[instance.kernel].instances[instance.instance].parameters;
  packed.variant = kernel.getVariant().value_or("any").str();
  packed.symbol = kernel.getSymName().str();
  packed.facts = factsOf(kernel);
  packed.dtypeNames = dtypesOf(*program.kernel(instance.kernel, instance.instance), kernel.getNumArguments());
  if (isDeterministic(kernel))
    packed.flags.push_back("deterministic");
  if (isBatchInvariant(kernel))
    packed.flags.push_back("batch_invariant");
  if (std::optional<tile::Cost> cost = tile::estimateCost(kernel)) {
    packed.flops = std::move(cost->flops);
    packed.bytes = std::move(cost->bytes);
  }
  if (std::optional<tile::CostTerm> tiles = tile::countTiles(kernel))
    packed.tiles = {std::move(*tiles)};
  if (hasAlternatives(program.kernels()[instance.kernel]))
    if (auto flops = tile::estimateTileFlops(kernel); flops && (!kernel.isPersistent() || !packed.tiles.empty()))
      packed.work.emplace().flops = std::move(*flops);
  return packed;
}

} // namespace kpkg::compiler
