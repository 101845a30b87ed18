// Measures the work of a kernel: its widest tile, its memory traffic and its registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/Work.h"
#include "dialect/kgpu/analysis/DotLayout.h"
#include "dialect/kgpu/analysis/Positions.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;

namespace kpkg::kgpu {
namespace {
int64_t bytesOf(RankedTensorType type) { return type.getNumElements() * elementBytes(type.getElementType()); }

/// Returns the tile that an op moves between memory and registers.
RankedTensorType movedTile(Operation *op) {
  Type type = TypeSwitch<Operation *, Type>(op)
                  .Case<tile::LoadOp, tile::GatherOp>([](auto load) { return load.getResult().getType(); })
                  .Case<tile::StoreOp, tile::AddStoreOp, tile::ScatterOp, tile::AtomicOp>(
                      [](auto store) { return store.getValue().getType(); })
                  .Default(Type());
  return dyn_cast_or_null<RankedTensorType>(type);
}

/// Returns whether a value takes no registers of its own: it is recomputed at its use, or shares its operand's
/// registers.
bool isFree(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<tile::SplatOp, tile::IotaOp, tile::BroadcastOp, tile::PermuteOp>(op) || op->hasTrait<OpTrait::ConstantLike>())
    return true;
  if (isa<tile::ReshapeOp>(op))
    return isFree(op->getOperand(0));
  // Masks that are computed from coordinates.
  return isa<arith::CmpIOp>(op) && llvm::all_of(op->getOperands(), isFree);
}

/// Returns 32-bit registers, times 32.
int64_t registers32(RankedTensorType type) {
  Type element = type.getElementType();
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return type.getNumElements() * bits;
}

/// Returns the type in which a value is kept: a value that is widened for a single use stays narrow until then.
RankedTensorType keptAs(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op) && value.hasOneUse())
    return cast<RankedTensorType>(op->getOperand(0).getType());
  return cast<RankedTensorType>(value.getType());
}

/// Returns whether a whole tile is live at the op. That holds at loads, which are issued together, and where threads
/// wait for each other. Elementwise code in between runs element by element.
bool needsWholeTiles(Operation *op) {
  return op->getNumRegions() != 0 || isa<tile::LoadOp, tile::GatherOp, tile::ReduceOp, tile::ArgReduceOp>(op);
}

/// Returns the largest number of registers that tiles take at once. Operations stand for points in time. A value is
/// live from its definition until before its last use, whose result may take its registers. It is also live throughout
/// a loop that uses it, if it is defined outside.
int64_t peakRegisters(tile::KernelOp kernel) {
  const Positions positions(kernel.getBody().front());
  SmallVector<int64_t> change(positions.next + 2, 0);
  auto add = [&](Value value, int64_t from) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || isFree(value))
      return;
    int64_t to = from;
    for (Operation *user : value.getUsers()) {
      Operation *here = value.getParentBlock()->findAncestorOpInBlock(*user);
      bool isOfLoop = here != user && isa<LoopLikeOpInterface>(here);
      to = std::max(to, isOfLoop ? positions.of.at(here).second : positions.of.at(user).first);
    }
    if (to == from)
      return;
    change[from] += registers32(keptAs(value));
    change[to] -= registers32(keptAs(value));
  };
  kernel.getBody().walk([&](Operation *op) {
    for (Value result : op->getResults())
      add(result, positions.of.at(op).second);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          add(argument, positions.of.at(op).first);
  });
  std::partial_sum(change.begin(), change.end(), change.begin());
  int64_t peak = 0;
  for (auto [op, place] : positions.of)
    if (needsWholeTiles(op))
      peak = std::max({peak, change[place.first], change[place.second]});
  return llvm::divideCeil(peak, 32);
}

/// Returns whether a value differs between kernel blocks. Data that is the same for all blocks stays in the caches.
bool dependsOnBlock(Value value, DenseMap<Value, bool> &known) {
  auto [entry, isNew] = known.try_emplace(value, false);
  if (!isNew)
    return entry->second;
  Operation *op = value.getDefiningOp();
  bool result = false;
  if (!op) {
    // An argument of a loop: coordinates, or a carried value.
    Operation *parent = value.getParentBlock()->getParentOp();
    result = isa<tile::ForTilesOp>(parent);
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      result = llvm::any_of(loop->getOperands(), [&](Value operand) { return dependsOnBlock(operand, known); });
  } else {
    result = isa<tile::BlockIdOp>(op) ||
             llvm::any_of(op->getOperands(), [&](Value operand) { return dependsOnBlock(operand, known); });
  }
  return known[value] = result;
}

/// Returns whether facts permit vectors of 16 bytes.
bool isFetchable(tile::LoadOp load) {
  tile::ViewType view = load.getView().getType();
  tile::ViewFacts facts = view.getFacts();
  return view.getUnit() >= 0 && facts.align >= 16 && facts.divisible * view.getElementBytes() >= 16;
}

/// Returns whether only one thread learns what an update found in memory, and the others need it too.
bool returnsOld(Operation *op) {
  auto atomic = dyn_cast<tile::AtomicOp>(op);
  return atomic && atomic.getOld();
}

/// Returns whether the op does the same in a packed kernel as in an unpacked one.
bool isPackable(Operation *op) {
  if (isa<tile::PrintOp, tile::AssertOp, tile::DotOp, tile::ScanOp, tile::PermuteOp, tile::ForTilesOp, tile::ExtractOp,
          tile::JoinOp, tile::UnpackOp, tile::ScratchOp>(op) ||
      returnsOld(op) || isa_and_nonnull<scf::SCFDialect>(op->getDialect()))
    return false;
  if (auto reshape = dyn_cast<tile::ReshapeOp>(op)) {
    // Extents of 1 may be added or removed; any other reshape could need an exchange.
    auto wide = [](Type type) {
      SmallVector<int64_t> shape(cast<RankedTensorType>(type).getShape());
      llvm::erase(shape, 1);
      return shape;
    };
    return wide(reshape.getValue().getType()) == wide(reshape.getType());
  }
  return true;
}
} // namespace

Work measure(tile::KernelOp kernel, const TargetModel &target) {
  Work work;
  work.packable = true;
  DenseMap<Block *, int64_t> staged;
  kernel.getBody().walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType()); type && !isFree(result))
        work.computedElements = std::max(work.computedElements, type.getNumElements());
    work.packable = work.packable && isPackable(op);
    work.prints = work.prints || isa<tile::PrintOp>(op);
    work.movesParts = work.movesParts || isa<tile::ExtractOp, tile::JoinOp, tile::ScratchOp>(op) || returnsOld(op);
    if (RankedTensorType type = movedTile(op)) {
      if (bytesOf(type) > work.widestBytes) {
        work.widestBytes = bytesOf(type);
        work.widestElements = type.getNumElements();
      }
      work.loops = work.loops || op->getParentOfType<LoopLikeOpInterface>();
    }
    if (auto dot = dyn_cast<tile::DotOp>(op)) {
      auto type = cast<RankedTensorType>(dot.getType());
      if (type.getNumElements() > work.dotElements) {
        work.dotElements = type.getNumElements();
        work.dotElementBytes = elementBytes(type.getElementType());
      }
      if (dotKind(dot, target) != DotKind::Fma) {
        work.mmaElements = std::max(work.mmaElements, type.getNumElements());
        int64_t &bytes = staged[dot->getBlock()];
        for (Value operand : {dot.getLhs(), dot.getRhs()})
          bytes += bytesOf(cast<RankedTensorType>(operand.getType()));
        work.mmaStageBytes = std::max(work.mmaStageBytes, bytes);
      }
    }
  });
  DenseMap<Block *, int64_t> loaded, ofRow;
  DenseMap<Value, bool> known;
  kernel.getBody().walk([&](Operation *op) {
    RankedTensorType type = movedTile(op);
    if (type && isa<tile::LoadOp, tile::GatherOp>(op) && 2 * bytesOf(type) >= work.widestBytes) {
      if (llvm::any_of(op->getOperands(), [&](Value operand) { return dependsOnBlock(operand, known); })) {
        work.inputBytes = std::max(work.inputBytes, loaded[op->getBlock()] += bytesOf(type));
        if (isa<tile::LoadOp>(op)) {
          work.rowBytes = std::max(work.rowBytes, ofRow[op->getBlock()] += bytesOf(type));
          work.isFetchable = work.isFetchable && isFetchable(cast<tile::LoadOp>(op));
        }
      } else {
        work.repeatedBytes += bytesOf(type);
      }
    }
    work.writesRows =
        work.writesRows || (type && !isa<tile::LoadOp, tile::GatherOp>(op) && 2 * bytesOf(type) >= work.widestBytes);
    bool across = isa<tile::ReduceOp, tile::ArgReduceOp, tile::CombineOp, tile::ScanOp>(op);
    if (across && 2 * cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements() >= work.widestElements)
      work.reduces = true;
  });
  work.liveRegisters = peakRegisters(kernel);
  return work;
}
} // namespace kpkg::kgpu
