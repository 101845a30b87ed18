// Finds the part of a tile that stores can reach; the rest need not be computed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of 8 x 64 in an accumulator of 128 x 256 computes only 8 x 64 elements. The analysis follows each element
// through dots, loops and elementwise ops to the stores, which end where their views end. It handles one dimension at a
// time. Scores, for example, pass row by row through a softmax and the product with values, but their columns do not.
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static int64_t extent(Value tile, int dim) { return cast<RankedTensorType>(tile.getType()).getDimSize(dim); }

/// Calls `follow(result, dim of the result)` for the tiles that `use` computes from `tile`, if index i along `dim` maps
/// to index i of the result. Returns false when no dimension of a result corresponds to `dim`.
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

/// Collects the stores that write index i along `dim` of `tile` as their index i, with the dimension of the store.
/// Returns false when any other op reads `tile`.
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

/// Returns the index along `dim` from which on no element of `tiles` is read. Returns null when any element may be
/// read, or when the end is not known at the current insertion point.
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
    if (!known.insert({store.getView(), offset}).second) // The same store in another arm.
      continue;
    Value one = sub(views.at(store.getView()).shape[of], scalars.at(offset));
    end = smax(end, one);
  }
  return smin(end, indexConstant(extent(tiles.front(), dim)));
}

/// Returns the end of the elements that are read, for each dimension of `tiles`, which have one shape. Empty: all
/// elements are read.
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
