// Copies of a kernel for different facts about its arguments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.kernel @k(%x: !tile.view<2xf32>)
// After:  tile.kernel @k__unit(%x: !tile.view<2xf32, unit = 1>) attributes {variant = "unit"}
//         tile.kernel @k__any(%x: !tile.view<2xf32>) attributes {variant = "any"}
//
// On entry: kernels whose view arguments state no facts. On exit: types of views that were indexed follow those of the arguments.
#include "dialect/tile/transforms/Variants.h"
#include "dialect/tile/transforms/Passes.h"

using namespace mlir;

namespace kpkg::tile {

#define GEN_PASS_DEF_TILEMAKEVARIANTS
#include "dialect/tile/transforms/Passes.h.inc"

namespace {

/// True when `tile` is nothing but a factor of dots, as it is or permuted.
bool onlyMultiplied(Value tile) {
  return llvm::all_of(tile.getUses(), [](OpOperand &use) {
    if (auto dot = dyn_cast<DotOp>(use.getOwner()))
      return use.get() != dot.getAccumulator();
    auto permute = dyn_cast<PermuteOp>(use.getOwner());
    return permute && onlyMultiplied(permute.getResult());
  });
}

/// True when all that is ever done with `view` is to load factors of dots from it.
bool onlyFeedsDots(Value view) {
  return llvm::all_of(view.getUsers(), [](Operation *user) {
    if (auto load = dyn_cast<LoadOp>(user))
      return onlyMultiplied(load.getResult());
    if (auto drop = dyn_cast<DropOp>(user))
      return onlyFeedsDots(drop.getResult());
    return isa<DimOp, StrideOp>(user);
  });
}

/// Gives the view arguments their facts; false when there is none to give.
bool assumeUnitStrides(KernelOp kernel) {
  SmallVector<Type> types;
  bool changed = false;
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    auto view = dyn_cast<ViewType>(argument.getType());
    if (view && view.getRank() > 0 && !onlyFeedsDots(argument)) {
      argument.setType(view.withUnit(view.getRank() - 1));
      changed = true;
    }
    types.push_back(argument.getType());
  }
  kernel.setFunctionType(FunctionType::get(kernel.getContext(), types, {}));
  kernel.walk<WalkOrder::PreOrder>([](DropOp drop) {
    drop.getResult().setType(cast<ViewType>(drop.getView().getType()).drop(drop.getDims()));
  });
  return changed;
}

void name(KernelOp kernel, StringRef symbol, StringRef variant) {
  kernel.setSymName((symbol + "__" + variant).str());
  kernel.setVariant(variant);
}

struct TileMakeVariants final : impl::TileMakeVariantsBase<TileMakeVariants> {
  void runOnOperation() override { makeVariants(getOperation()); }
};

} // namespace

void makeVariants(ModuleOp module) {
  SmallVector<KernelOp> kernels(module.getOps<KernelOp>());
  for (KernelOp kernel : kernels) {
    std::string symbol = kernel.getSymName().str();
    OpBuilder builder(kernel);
    auto unit = cast<KernelOp>(builder.clone(*kernel));
    if (assumeUnitStrides(unit))
      name(unit, symbol, "unit");
    else
      unit->erase();
    name(kernel, symbol, "any");
  }
}

} // namespace kpkg::tile
