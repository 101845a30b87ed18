// Copies kernels for different facts about their arguments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.kernel @k(%x: !tile.view<2xf32>)
// After:  tile.kernel @k__unit(%x: !tile.view<2xf32, unit = 1>) attributes {variant = "unit"}
//         tile.kernel @k__any(%x: !tile.view<2xf32>) attributes {variant = "any"}
//
// On entry: view arguments of kernels state no facts.
// On exit: types of parts of views follow from the types of the arguments.
#include "dialect/tile/transforms/Variants.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "dialect/tile/transforms/IndexFacts.h"
#include "dialect/tile/transforms/Passes.h"
#include "dialect/tile/transforms/RowGathers.h"
#include "dialect/tile/transforms/WindowGathers.h"

using namespace mlir;

namespace kpkg::tile {

#define GEN_PASS_DEF_TILEMAKEVARIANTS
#include "dialect/tile/transforms/Passes.h.inc"

namespace {

/// The widest access of one thread.
constexpr int64_t kVectorBytes = 16;

/// Returns whether `tile` is used only as an operand of dots, possibly permuted.
bool onlyMultiplied(Value tile) {
  return llvm::all_of(tile.getUses(), [](OpOperand &use) {
    if (auto dot = dyn_cast<DotOp>(use.getOwner()))
      return use.get() != dot.getAccumulator();
    auto permute = dyn_cast<PermuteOp>(use.getOwner());
    return permute && onlyMultiplied(permute.getResult());
  });
}

/// Returns whether `view` is used only to load operands of dots.
bool onlyFeedsDots(Value view) {
  return llvm::all_of(view.getUsers(), [](Operation *user) {
    if (auto load = dyn_cast<LoadOp>(user))
      return onlyMultiplied(load.getResult());
    if (isa<DropOp, SliceOp>(user))
      return onlyFeedsDots(user->getResult(0));
    return isa<DimOp, StrideOp>(user);
  });
}

/// Returns whether `view` is used only for extents, strides and single elements at scalar coordinates.
bool onlyReadAsScalars(Value view) {
  return llvm::all_of(view.getUsers(), [](Operation *user) {
    if (auto drop = dyn_cast<DropOp>(user))
      return drop.getResult().getType().getRank() == 0 || onlyReadAsScalars(drop.getResult());
    if (auto slice = dyn_cast<SliceOp>(user))
      return onlyReadAsScalars(slice.getResult());
    return isa<DimOp, StrideOp>(user);
  });
}

/// Returns how many leading dimensions every use of `view` indexes and drops.
int64_t outerDimensions(Value view) {
  int64_t outer = cast<ViewType>(view.getType()).getRank() - 1;
  for (Operation *user : view.getUsers()) {
    if (isa<DimOp, StrideOp>(user))
      continue;
    auto drop = dyn_cast<DropOp>(user);
    int64_t here = 0;
    while (drop && here < int64_t(drop.getDims().size()) && drop.getDims()[here] == here)
      ++here;
    outer = std::min(outer, here);
  }
  return outer;
}

enum class Accesses { None, Vectors, Others };

bool hasProducts(Operation *op) {
  return op->getParentOfType<KernelOp>()->walk([](DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Returns whether `store` writes about one number per thread in a kernel with products, such as row statistics next to
/// tiles. Such stores need no vectors.
bool storesStatistics(StoreOp store) {
  auto tile = dyn_cast<RankedTensorType>(store.getValue().getType());
  return tile && tile.getRank() == 1 && hasProducts(store);
}

/// Returns whether a gather or scatter of tiles of `type` accesses pieces of rows in whole vectors of `length`
/// elements. Always false in kernels with products, where only TMA gathers matter: their other views must not require
/// more.
bool coversRows(Operation *op, Value view, ValueRange indices, Value mask, Type type, int64_t length) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile || mask || hasProducts(op))
    return false;
  std::optional<RowGather> rows = rowGather(indices, tile.getShape());
  return rows && int64_t(rows->along) == cast<ViewType>(view.getType()).getRank() - 1 &&
         tile.getDimSize(1) % length == 0 &&
         llvm::all_of(rows->start, [&](Value start) { return divisorOf(start) % length == 0; });
}

/// Classifies the accesses to tiles of `view`. The result is `Vectors` if all of them cover whole vectors of `length`
/// elements. The vectors run along dimension `fromEnd` (1 = the last one), which is never dropped. Elementwise gathers
/// and scatters work with any view and do not count. Exceptions are gathers by TMA, and scatters that write rows of an
/// argument. Stores of statistics do not count either.
Accesses accessesOf(Value view, int64_t length, int64_t fromEnd) {
  auto ofTile = [&](Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    return tile && tile.getDimSize(tile.getRank() - fromEnd) % length == 0 ? Accesses::Vectors : Accesses::Others;
  };
  Accesses all = Accesses::None;
  for (Operation *user : view.getUsers()) {
    Accesses one = Accesses::Others;
    auto gather = dyn_cast<GatherOp>(user);
    auto scatter = dyn_cast<ScatterOp>(user);
    bool isWindow = gather && windowGather(gather);
    bool isRows = fromEnd == 1 && ((gather && coversRows(user, view, gather.getIndices(), gather.getMask(),
                                                         gather.getResult().getType(), length)) ||
                                   (scatter && coversRows(user, view, scatter.getIndices(), scatter.getMask(),
                                                          scatter.getValue().getType(), length)));
    if (isRows) {
      all = Accesses::Vectors;
      continue;
    }
    bool writesRows = scatter && isa<BlockArgument>(view) && scattersRows(scatter);
    if (!isWindow && !writesRows && isa<DimOp, StrideOp, GatherOp, ScatterOp, AtomicOp>(user))
      continue;
    if (auto drop = dyn_cast<DropOp>(user); drop && drop.getResult().getType().getRank() == 0)
      continue;
    if (auto store = dyn_cast<StoreOp>(user); store && storesStatistics(store))
      continue;
    if (isWindow)
      one = ofTile(gather.getResult().getType());
    else if (writesRows)
      one = ofTile(scatter.getValue().getType());
    else if (auto load = dyn_cast<LoadOp>(user))
      one = ofTile(load.getResult().getType());
    else if (auto store = dyn_cast<StoreOp>(user))
      one = ofTile(store.getValue().getType());
    else if (auto store = dyn_cast<AddStoreOp>(user))
      one = ofTile(store.getValue().getType());
    else if (auto drop = dyn_cast<DropOp>(user)) {
      one = accessesOf(drop.getResult(), length, fromEnd);
      bool isKept = drop.getDims().back() < drop.getView().getType().getRank() - fromEnd;
      if (one == Accesses::Vectors && !isKept)
        one = Accesses::Others;
    } else if (auto slice = dyn_cast<SliceOp>(user)) {
      // The beginning along the contiguous dimension may be unaligned.
      bool isKept = static_cast<int64_t>(slice.getDimension()) != slice.getView().getType().getRank() - fromEnd;
      one = isKept ? accessesOf(slice.getResult(), length, fromEnd) : Accesses::Others;
    }
    if (one == Accesses::Others)
      return one;
    all = one == Accesses::Vectors ? one : all;
  }
  return all;
}

bool isAccessedInVectors(Value view, int64_t length, int64_t fromEnd = 1) {
  return accessesOf(view, length, fromEnd) == Accesses::Vectors;
}

bool hasVectorAccess(KernelOp kernel) {
  return llvm::any_of(kernel.getBody().getArguments(), [](BlockArgument argument) {
    auto view = dyn_cast<ViewType>(argument.getType());
    return view && view.getRank() > 0 && isAccessedInVectors(argument, kVectorBytes / view.getElementBytes());
  });
}

enum class Strides { Any, Unit, Vectors };

/// Returns the views that are used only as operands of products. Either of their last two dimensions may be contiguous.
SmallVector<Value> factors(KernelOp kernel) {
  SmallVector<Value> views;
  for (Value argument : kernel.getBody().getArguments()) {
    auto view = dyn_cast<ViewType>(argument.getType());
    if (view && view.getRank() >= 2 && onlyFeedsDots(argument) &&
        isAccessedInVectors(argument, kVectorBytes / view.getElementBytes(), 2))
      views.push_back(argument);
  }
  return views;
}

/// Returns whether facts about strides would serve no access to `view`. At thread level elements are all accesses.
bool needsNoStrides(Value view) {
  auto kernel = cast<KernelOp>(view.getParentRegion()->getParentOp());
  return !tile::isOfThreads(kernel) && onlyReadAsScalars(view);
}

/// Returns the facts that a variant of this kind states about `view`.
ViewFacts factsFor(Value view, Strides strides, VariantKind kind, int64_t indexBits) {
  auto type = cast<ViewType>(view.getType());
  ViewFacts facts;
  facts.index = indexBits;
  // A batch of operands may be huge while each matrix is small, such as weights of many experts.
  if (indexBits == 32 && type.getRank() > 2 && onlyFeedsDots(view))
    facts.outer = outerDimensions(view);
  if (strides == Strides::Any || type.getRank() == 0 || needsNoStrides(view) ||
      (kind == VariantKind::Cpu && onlyFeedsDots(view)))
    return facts;
  facts.unit = type.getRank() - 1;
  int64_t length = kVectorBytes / type.getElementBytes();
  if (strides == Strides::Vectors && isAccessedInVectors(view, length)) {
    facts.align = kVectorBytes;
    facts.divisible = length;
  }
  return facts;
}

/// Inserts a copy of `kernel` before it, with the facts in its types.
KernelOp makeVariant(KernelOp kernel, StringRef name, Strides strides, VariantKind kind, int64_t indexBits = 64) {
  OpBuilder builder(kernel);
  auto variant = cast<KernelOp>(builder.clone(*kernel));
  variant.setSymName((kernel.getSymName() + "__" + name).str());
  variant.setVariant(name);
  SmallVector<Type> types;
  for (BlockArgument argument : variant.getBody().getArguments()) {
    if (auto view = dyn_cast<ViewType>(argument.getType()))
      argument.setType(view.withFacts(factsFor(argument, strides, kind, indexBits)));
    types.push_back(argument.getType());
  }
  variant.setFunctionType(FunctionType::get(kernel.getContext(), types, {}));
  inferParts(variant);
  return variant;
}

/// Makes the views with these numbers contiguous along their last dimension but one.
void turn(KernelOp variant, ArrayRef<unsigned> arguments) {
  SmallVector<Type> types(variant.getBody().getArgumentTypes());
  for (unsigned number : arguments) {
    auto view = cast<ViewType>(types[number]);
    ViewFacts facts = view.getFacts();
    facts.unit = view.getRank() - 2;
    facts.align = kVectorBytes;
    facts.divisible = kVectorBytes / view.getElementBytes();
    types[number] = view.withFacts(facts);
    variant.getBody().getArgument(number).setType(types[number]);
  }
  variant.setFunctionType(FunctionType::get(variant.getContext(), types, {}));
  inferParts(variant);
}

/// Makes the "vector" variants: one for each choice of the operands' contiguous dimensions, which its name encodes.
void makeVectorVariants(KernelOp kernel, SmallVectorImpl<KernelOp> &variants) {
  SmallVector<Value> turnable = factors(kernel);
  if (turnable.size() > 2) // More operands would multiply the variants.
    turnable.clear();
  for (unsigned choice = 0; choice < 1u << turnable.size(); ++choice) {
    std::string name = choice == 0 ? "vector" : "vector_";
    SmallVector<unsigned> turned;
    for (auto [bit, factor] : llvm::enumerate(turnable)) {
      bool turns = choice >> bit & 1;
      if (turns)
        turned.push_back(cast<BlockArgument>(factor).getArgNumber());
      if (choice != 0)
        name += turns ? 't' : 'n';
    }
    KernelOp variant = makeVariant(kernel, name, Strides::Vectors, VariantKind::Gpu, 32);
    turn(variant, turned);
    variants.push_back(variant);
  }
}

struct TileMakeVariants final : impl::TileMakeVariantsBase<TileMakeVariants> {
  using TileMakeVariantsBase::TileMakeVariantsBase;
  void runOnOperation() override {
    if (kind != "cpu" && kind != "gpu") {
      getOperation().emitError() << "there are no variants for '" << kind << "': cpu or gpu";
      return signalPassFailure();
    }
    makeVariants(getOperation(), kind == "cpu" ? VariantKind::Cpu : VariantKind::Gpu);
  }
};

} // namespace

void makeVariants(ModuleOp module, VariantKind kind) {
  SmallVector<KernelOp> kernels(module.getOps<KernelOp>());
  for (KernelOp kernel : kernels) {
    SmallVector<KernelOp> variants;
    if (kind == VariantKind::Gpu && hasVectorAccess(kernel)) {
      makeVectorVariants(kernel, variants);
      variants.push_back(makeVariant(kernel, "vector64", Strides::Vectors, kind));
    }
    if (kind == VariantKind::Gpu && tile::isOfThreads(kernel))
      variants.push_back(makeVariant(kernel, "unit32", Strides::Unit, kind, 32));
    variants.push_back(makeVariant(kernel, "unit", Strides::Unit, kind));
    variants.push_back(makeVariant(kernel, "any", Strides::Any, kind));
    for (size_t i = 0; i + 1 < variants.size(); ++i)
      if (variants[i].getFunctionType() == variants[i + 1].getFunctionType())
        variants[i].erase();
    kernel.erase();
  }
}

} // namespace kpkg::tile
