// How much of a tile in memory is ever asked for: what stores leave out need not be computed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An accumulator of 128 x 256 for a product of 8 x 64 is filled with zeros in 8 x 64 elements: its elements go, each by
// itself, through dots, loops and arithmetic into a store that ends where its view does. One dimension is looked at at
// a time: rows of scores go row by row through a softmax and the product with values, their columns do not.
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static int64_t extent(Value tile, int dim) { return cast<RankedTensorType>(tile.getType()).getDimSize(dim); }

/// Calls `follow(result, dim of it)` for the tiles that `use` makes of `tile`, where index i along `dim` goes to index
/// i. False when they do so along no dimension.
bool KernelEmitter::followLine(OpOperand &use, int dim, llvm::function_ref<bool(Value, int)> follow) {
  Operation *user = use.getOwner();
  unsigned number = use.getOperandNumber();
  return llvm::TypeSwitch<Operation *, bool>(user)
      .Case([&](tile::ReduceOp reduce) { return dim != int(reduce.getAxis()) && follow(reduce.getResult(), dim); })
      .Case([&](tile::BroadcastOp broadcast) {
        return extent(broadcast.getResult(), dim) == extent(use.get(), dim) && follow(broadcast.getResult(), dim);
      })
      .Case([&](tile::PermuteOp permute) {
        auto found = llvm::find(permute.getPermutation(), dim);
        return follow(permute.getResult(), found - permute.getPermutation().begin());
      })
      .Case([&](tile::ReshapeOp reshape) {
        std::optional<SmallVector<int>> source = unitReshape(reshape);
        auto found = source ? llvm::find(*source, dim) : nullptr;
        return found && found != source->end() && follow(reshape.getResult(), found - source->begin());
      })
      .Case([&](tile::DotOp dot) {
        int last = cast<RankedTensorType>(dot.getType()).getRank() - 1;
        bool isLeft = use.get() == dot.getLhs(), isRight = use.get() == dot.getRhs();
        if (isLeft || isRight)
          return isLeft != isRight && use.get() != dot.getAccumulator() && dim == (isLeft ? last - 1 : last) &&
                 follow(dot.getResult(), dim);
        return follow(dot.getResult(), dim);
      })
      .Case([&](scf::ForOp loop) {
        return follow(loop.getTiedLoopRegionIterArg(&use), dim) && follow(loop.getTiedLoopResult(&use), dim);
      })
      .Case([&](scf::YieldOp) {
        if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()))
          return follow(loop.getRegionIterArg(number), dim) && follow(loop.getResult(number), dim);
        auto branch = dyn_cast<scf::IfOp>(user->getParentOp());
        return branch && follow(branch.getResult(number), dim);
      })
      .Default([&](Operation *) { return isElementwise(user) && follow(user->getResult(0), dim); });
}

/// Collects the stores to which index i along `dim` of `tile` goes as index i, with that dimension of theirs. False
/// when something else reads it.
bool KernelEmitter::collectStores(Value tile, int dim, llvm::SmallDenseSet<std::pair<Value, int>> &seen,
                                  SmallVectorImpl<std::pair<tile::StoreOp, int>> &stores) {
  if (!seen.insert({tile, dim}).second)
    return true;
  return llvm::all_of(tile.getUses(), [&](OpOperand &use) {
    if (auto store = dyn_cast<tile::StoreOp>(use.getOwner())) {
      stores.emplace_back(store, dim);
      return true;
    }
    return followLine(use, dim, [&](Value next, int to) { return collectStores(next, to, seen, stores); });
  });
}

/// The index along `dim` from which on nobody reads `tiles`, as far as that is known where the emitter stands; null
/// when all of it may be read.
Value KernelEmitter::demandedEnd(ValueRange tiles, int dim) {
  llvm::SmallDenseSet<std::pair<Value, int>> seen;
  SmallVector<std::pair<tile::StoreOp, int>> stores;
  for (Value tile : tiles)
    if (extent(tile, dim) == 1 || !collectStores(tile, dim, seen, stores))
      return Value();
  auto isKnown = [&](Value value) {
    return value.getParentBlock()->findAncestorOpInBlock(*current) && (scalars.count(value) || views.count(value));
  };
  Value end = indexConstant(0);
  llvm::SmallDenseSet<std::pair<Value, Value>> known;
  for (auto [store, of] : stores) {
    Value offset = store.getOffsets()[of];
    if (!isKnown(store.getView()) || !isKnown(offset))
      return Value();
    if (!known.insert({store.getView(), offset}).second) // in another arm
      continue;
    Value one = sub(views.at(store.getView()).shape[of], scalars.at(offset));
    end = smax(end, one);
  }
  return smin(end, indexConstant(extent(tiles.front(), dim)));
}

/// For each dimension the index from which on nobody reads `tiles`, which have one shape. Empty: all of it is read.
SmallVector<Value> KernelEmitter::demandedEnds(ValueRange tiles) {
  SmallVector<Value> ends;
  bool isPart = false;
  for (int dim = 0, rank = cast<RankedTensorType>(tiles.front().getType()).getRank(); dim < rank; ++dim) {
    Value end = demandedEnd(tiles, dim);
    isPart |= bool(end);
    ends.push_back(end ? end : indexConstant(extent(tiles.front(), dim)));
  }
  return isPart ? ends : SmallVector<Value>();
}

} // namespace kpkg::lower::cpu
