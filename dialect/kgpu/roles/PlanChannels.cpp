// Chooses the slots, parts and delay of the channels between roles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/roles/PlanChannels.h"
#include "dialect/kgpu/analysis/Slices.h"
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/kgpu/ir/RemarkText.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
constexpr int64_t kValueSlots = 2;
/// Of tiles that warpgroups exchange in the same iteration, or with a delay of one. kgpu.ring gives the reason.
constexpr int64_t kExchangedSlots = 2, kDelayedSlots = 4;
/// Shared memory that is left for barriers and partial sums, and for barriers alone.
constexpr int64_t kReservedBytes = 2048, kBarrierBytes = 1024;

constexpr Optimisation kCopies{"kgpu-specialise-warps", "operand copied ahead"};
constexpr Optimisation kDelay{"kgpu-specialise-warps", "product of a computed tile one iteration later"};
constexpr Optimisation kTwoParts{"kgpu-specialise-warps", "computed operand in two parts"};

class Planning {
public:
  Planning(tile::KernelOp kernel, RolePartition &partition)
      : kernel(kernel), partition(partition), target(targetOf(kernel)), launch(getLaunch(kernel)) {}

  LogicalResult run() {
    kernel.walk([&](AllocOp alloc) { otherBytes += cast<SharedType>(alloc.getResult().getType()).getSizeBytes(); });
    if (failed(chooseCopies()))
      return failure();
    choosePublished();
    return success();
  }

private:
  /// Returns the bytes of one slot in all channels of a kind.
  int64_t bytesOf(ChannelKind kind) {
    int64_t sum = 0;
    for (Channel *channel : partition.channelsOf(kind))
      sum += channel->bytes();
    return sum;
  }

  LogicalResult chooseCopies() {
    SmallVector<Channel *> copies = partition.channelsOf(ChannelKind::Copy);
    unsigned deepest = 0;
    for (Channel *copy : copies)
      deepest = std::max(deepest, copy->depth);
    int64_t often = 0, seldom = 0;
    for (Channel *copy : copies)
      (copy->depth == deepest ? often : seldom) += copy->bytes();
    int64_t ctas = launch.minCtas;
    int64_t taken = kReservedBytes + otherBytes + bytesOf(ChannelKind::Published);
    int64_t bytes = (ctas > 1 ? target.sharedPerSm / ctas - target.reservedShared : target.sharedPerCta) - taken;
    int64_t exchanged = chooseExchanged(bytes - seldom - 2 * often);
    bytes -= exchanged;
    auto roomBeside = [&](int64_t slots) { return (bytes - slots * seldom) / often; };
    int64_t stages = kernel.getHint(tile::Hint::Stages);
    int64_t seldomSlots =
        roomBeside(2) >= std::min(target.heuristics.manySlots, std::max<int64_t>(roomBeside(1), 2)) ? 2 : 1;
    int64_t slots = std::min(stages != 0 ? stages : target.heuristics.mostSlots, roomBeside(seldomSlots));
    if (slots < 2)
      return kernel.emitError() << "needs " << taken + exchanged + seldom + 2 * often
                                << " bytes of shared memory for operands that are copied ahead";
    for (Channel *copy : copies) {
      copy->slots = copy->depth == deepest ? slots : seldomSlots;
      for (unsigned stream : copy->streams)
        for (const Member &member : partition.streams[stream].members)
          remarkApplied(member.operand.load, kCopies,
                        "by a warp of its own, to shared memory with room for " + counted(copy->slots, "tile"));
    }
    return success();
  }

  // Exchanged tiles

  /// Chooses slots and delay of exchanged tiles, and returns the bytes that they take. `room` is left beside two slots
  /// of each copy.
  int64_t chooseExchanged(int64_t room) {
    int64_t all = bytesOf(ChannelKind::Exchanged);
    int64_t slots = room >= kDelayedSlots * all ? kDelayedSlots : kExchangedSlots;
    for (Channel *channel : partition.channelsOf(ChannelKind::Exchanged)) {
      channel->slots = slots;
      Operation *place = channel->tile.getDefiningOp();
      if (WhyNot why = whyNotDelayed(*channel)) {
        remarkRefused(place, kDelay, *why);
        continue;
      }
      remarkApplied(place, kDelay, "no warpgroup waits for the tile in the iteration that computes it");
      channel->delay = 1;
    }
    return slots * all;
  }

  /// Returns why the product of the tile has to follow in the same iteration.
  WhyNot whyNotDelayed(const Channel &channel) {
    auto loop = dyn_cast<scf::ForOp>(channel.tile.getDefiningOp()->getParentOp());
    if (!loop || !matchPattern(loop.getStep(), m_One()))
      return "the tile is computed in no loop that counts by 1";
    if (channel.slots < kDelayedSlots)
      return "shared memory has room for " + std::to_string(channel.slots) + " copies of the tile, not for " +
             std::to_string(kDelayedSlots);
    tile::DotOp product = channel.readers.front();
    bool isOnly = channel.readers.size() == 1 && product->getBlock() == loop.getBody() && product->hasOneUse() &&
                  readsFromOutside(product, loop) && isZero(product.getAccumulator());
    if (!isOnly)
      return "no single product reads the tile, beside an operand from outside of the loop, into a new result";
    auto store = dyn_cast<TensorStoreOp>(*product->user_begin());
    if (!store || !store.getAdds() || store->getBlock() != loop.getBody())
      return "the product's result is not just added to memory in each iteration";
    auto isKnown = [&](Value value) {
      auto argument = dyn_cast<BlockArgument>(value);
      return !argument || argument.getOwner() != loop.getBody() || argument == loop.getInductionVar();
    };
    bool areKnown =
        llvm::all_of(store.getOffsets(), isKnown) && llvm::all_of(offsetsOf(store, loop), [&](Operation *op) {
          return op->getNumRegions() == 0 && isMemoryEffectFree(op) && llvm::all_of(op->getOperands(), isKnown);
        });
    return areKnown ? WhyNot() : "the place of the addition depends on more than the loop's counter";
  }

  bool readsFromOutside(tile::DotOp product, scf::ForOp loop) {
    auto found = llvm::find_if(partition.products, [&](const StreamedDot &one) { return one.dot == product; });
    return !loop->isAncestor(found->rhs->load);
  }

  // Published tiles

  void choosePublished() {
    int64_t taken = kBarrierBytes + otherBytes + kValueSlots * bytesOf(ChannelKind::Value);
    for (const Channel &channel : partition.channels)
      taken += channel.slots * (channel.bytes() + 2 * int64_t(sizeof(int64_t))); // with mbarriers
    int64_t slots = taken + 2 * bytesOf(ChannelKind::Published) <= int64_t(target.sharedPerCta) ? 2 : 1;
    for (Channel *value : partition.channelsOf(ChannelKind::Value))
      value->slots = kValueSlots;
    for (Channel *operand : partition.channelsOf(ChannelKind::Published)) {
      operand->slots = slots;
      Operation *place = operand->tile.getDefiningOp();
      if (WhyNot why = whyNotInParts(*operand)) {
        remarkRefused(place ? place : operand->readers.front(), kTwoParts, *why);
        continue;
      }
      remarkApplied(place, kTwoParts, "products of the first part run while the second part is computed");
      operand->parts = kOperandParts;
    }
  }

  WhyNot whyNotInParts(const Channel &channel) {
    if (!hasParts(channel.tile, launch.consumers) || elementBytes(getElementTypeOrSelf(channel.tile.getType())) != 2)
      return "its tile has not 64 x 64 elements of 16 bits";
    if (channel.slots != 1)
      return "shared memory has room for several tiles, so that none waits for a whole one";
    if (elementwiseOps(channel.tile, launch.consumers).empty())
      return "its tile is not computed element by element";
    if (!areSideBySide(channel.readers))
      return "its products do not follow each other without a wait";
    return std::nullopt;
  }

  /// Returns whether the products stand in one block, and no wait has to stand between them.
  bool areSideBySide(ArrayRef<tile::DotOp> products) {
    Operation *first = products.front(), *last = products.back();
    if (llvm::any_of(products, [&](tile::DotOp product) { return product->getBlock() != first->getBlock(); }))
      return false;
    for (Operation *op = first; op != last; op = op->getNextNode()) {
      bool readsResult = llvm::any_of(
          products, [&](tile::DotOp product) { return llvm::is_contained(op->getOperands(), product.getResult()); });
      bool awaits =
          op != first && llvm::any_of(partition.streams, [&](Stream &stream) { return stream.begin() == op; });
      if (readsResult || awaits || op->getNumRegions() != 0 || isStore(op))
        return false;
    }
    return first == last || llvm::none_of(partition.streams, [&](Stream &stream) { return stream.begin() == last; });
  }

  tile::KernelOp kernel;
  RolePartition &partition;
  const TargetModel &target;
  Launch launch;
  int64_t otherBytes = 0; ///< of buffers that exist before
};
} // namespace

LogicalResult planChannels(tile::KernelOp kernel, RolePartition &partition) {
  return Planning(kernel, partition).run();
}

bool hasParts(Value tile, unsigned consumers) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  return type && hasLayout(type) && type.getShape() == ArrayRef<int64_t>{kPartRows, kOperandParts * kPartColumns} &&
         layoutOf(type) == wgmmaMade(type.getShape(), consumers);
}

SmallVector<Operation *> elementwiseOps(Value tile, unsigned consumers) {
  auto isWhole = [&](Value value) { return hasParts(value, consumers); };
  auto isOfElements = [&](Operation *op) {
    bool computes = op->hasTrait<OpTrait::Elementwise>() || isa<tile::BroadcastOp, tile::SplatOp>(op);
    return computes && isMemoryEffectFree(op) && op->getNumResults() == 1 && isWhole(op->getResult(0));
  };
  SmallVector<Operation *> ops = sliceIn(*tile.getParentBlock(), tile, isOfElements).takeVector();
  llvm::sort(ops, [](Operation *one, Operation *other) { return one->isBeforeInBlock(other); });
  bool areWhole = llvm::all_of(ops, [&](Operation *op) {
    return isa<tile::BroadcastOp>(op) || llvm::all_of(op->getOperands(), [&](Value operand) {
             return !isa<RankedTensorType>(operand.getType()) || isWhole(operand);
           });
  });
  return areWhole ? ops : SmallVector<Operation *>();
}

SetVector<Operation *> offsetsOf(TensorStoreOp store, scf::ForOp loop) {
  return sliceIn(*loop.getBody(), store.getOffsets());
}

} // namespace kpkg::kgpu
