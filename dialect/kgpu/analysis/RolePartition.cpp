// Partitions the ops of a kernel among roles of warps: a graph of ops with costs, cut into roles by channels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/RolePartition.h"
#include "dialect/kgpu/analysis/Dependents.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace kpkg::kgpu {

// Costs

OpCost &OpCost::operator+=(const OpCost &other) {
  copiedBytes += other.copiedBytes;
  tensorCycles += other.tensorCycles;
  fp32Cycles += other.fp32Cycles;
  sfuCycles += other.sfuCycles;
  registers += other.registers;
  return *this;
}

OpCost costOf(Operation *op) {
  const TargetModel &target = targetOf(op->getParentOfType<tile::KernelOp>());
  const auto tensorBytes = int64_t(2 * target.tensor16PerCycle), lanes = int64_t(target.float32PerCycle);
  OpCost cost;
  int64_t elements = 0;
  for (Type type : op->getResultTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type))
      elements = std::max(elements, tile.getNumElements());
  if (auto dot = dyn_cast<tile::DotOp>(op)) {
    auto left = cast<RankedTensorType>(dot.getLhs().getType());
    cost.registers = elements;
    cost.tensorCycles = elements * left.getShape().back() * elementBytes(left.getElementType()) / tensorBytes;
  } else if (isa<math::ExpOp, math::Exp2Op, math::LogOp, math::Log2Op, math::TanhOp, math::RsqrtOp, arith::DivFOp>(
                 op)) {
    cost.sfuCycles = llvm::divideCeil(elements, int64_t(target.specialPerCycle));
  } else if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
    cost.fp32Cycles = llvm::divideCeil(cast<RankedTensorType>(reduce.getValue().getType()).getNumElements(), lanes);
  } else if (op->hasTrait<OpTrait::Elementwise>() && !op->hasTrait<OpTrait::ConstantLike>()) {
    cost.fp32Cycles = llvm::divideCeil(elements, lanes);
  }
  return cost;
}

int64_t Channel::bytes() const {
  int64_t sum = 0;
  for (SharedType slot : slotTypes)
    sum += slot.getSizeBytes();
  return sum;
}

SmallVector<Channel *> RolePartition::channelsOf(ChannelKind kind) {
  SmallVector<Channel *> found;
  for (Channel &channel : channels)
    if (channel.kind == kind)
      found.push_back(&channel);
  return found;
}

bool isStore(Operation *op) {
  return isa<tile::StoreOp, tile::AddStoreOp, tile::ScatterOp, tile::AtomicOp, TensorStoreOp>(op);
}

namespace {
/// Returns the type of a slot for a row-major left operand.
SharedType operandSlot(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return SharedType::get(type.getShape(), type.getElementType(),
                         *panelsOf(type.getShape(), 1, elementBytes(type.getElementType())));
}

class Partitioning {
public:
  explicit Partitioning(tile::KernelOp kernel) : kernel(kernel) {}

  FailureOr<RolePartition> run() {
    result.products = streamedDots(kernel, targetOf(kernel));
    if (result.products.empty())
      return LogicalResult(
          kernel.emitError("has warpgroups that compute, but no product whose operands can be copied by themselves"));
    for (StreamedDot &product : result.products)
      if (const StreamedOperand *whole = wholeOf(product, result.products))
        product.rhs->load = whole->load;
    result.streams = streamsOf(kernel, result.products);
    addCopies();
    addExchanged();
    bool hasProducers = getLaunch(kernel).producers != 0;
    if (hasProducers && failed(divideProducts()))
      return failure();
    addWork(hasProducers);
    return std::move(result);
  }

private:
  /// Adds up the work of the blocks that have products.
  void addWork(bool hasProducers) {
    DenseSet<Block *> blocks;
    for (const StreamedDot &product : result.products)
      blocks.insert(tile::DotOp(product.dot)->getBlock());
    for (Block *block : blocks)
      for (Operation &op : *block)
        result.work[size_t(hasProducers && !isOfConsumers(&op) ? Role::Producers : Role::Consumers)] += costOf(&op);
    for (const Stream &stream : result.streams)
      for (const Member &member : stream.members)
        if (blocks.contains(member.operand.load->getBlock()))
          result.work[size_t(Role::ProducerWarp)].copiedBytes += member.slot.getSizeBytes();
  }

  unsigned loopsAround(Operation *op) {
    unsigned depth = 0;
    for (Operation *parent = op->getParentOp(); parent != kernel; parent = parent->getParentOp())
      ++depth;
    return depth;
  }

  /// Adds a channel for each group of streams that can share a ring.
  void addCopies() {
    for (auto [number, stream] : llvm::enumerate(result.streams)) {
      auto known = llvm::find_if(result.channels, [&](const Channel &channel) {
        return haveOneRing(result.streams[channel.streams.front()], stream);
      });
      if (known == result.channels.end()) {
        Channel channel{.kind = ChannelKind::Copy};
        for (const Member &member : stream.members)
          channel.slotTypes.push_back(member.slot);
        known = result.channels.insert(known, std::move(channel));
      }
      stream.ring = known - result.channels.begin();
      known->streams.push_back(number);
      known->depth = std::max(known->depth, loopsAround(stream.begin()));
    }
  }

  void addExchanged() {
    llvm::MapVector<Value, SmallVector<tile::DotOp, 1>> found;
    for (const StreamedDot &product : result.products)
      if (product.shared)
        found[product.shared].push_back(product.dot);
    for (auto &[tile, readers] : found)
      result.channels.push_back(
          {.kind = ChannelKind::Exchanged, .slotTypes = {operandSlot(tile)}, .tile = tile, .readers = readers});
  }

  // The producer warpgroup

  /// Divides the products between the producer warpgroup and the consumers, and finds the channels between both.
  LogicalResult divideProducts() {
    SmallVector<Value> first, second;
    SmallVector<tile::DotOp> readers;
    for (const StreamedDot &product : result.products) {
      if (readsComputed(product))
        readers.push_back(product.dot);
      (readsComputed(product) ? second : first).push_back(tile::DotOp(product.dot).getResult());
    }
    if (first.empty() || second.empty())
      return kernel.emitError("has no product of what another one gives, whose operand a warpgroup of its own could "
                              "compute");
    ofFirst = dependents(kernel, first);
    ofSecond = dependents(kernel, second);
    llvm::MapVector<Value, SmallVector<tile::DotOp, 1>> cuts; ///< by tile: the products that read it as an operand
    for (tile::DotOp product : readers) {
      if (!isPublished(product.getLhs()))
        return product.emitOpError("reads what its own results are part of, or what no other product leads to: no "
                                   "other warpgroup can compute that");
      cuts[cutOf(product.getLhs())].push_back(product);
    }
    kernel.walk([&](Operation *op) {
      if (op->getNumRegions() != 0 || op->hasTrait<OpTrait::IsTerminator>() || !isOfConsumers(op))
        return;
      if (isStore(op))
        result.consumerStores.insert(op);
      for (OpOperand &operand : op->getOpOperands())
        if (isPublished(operand.get()) && !(isa<tile::DotOp>(op) && operand.getOperandNumber() == 0))
          cuts.insert({cutOf(operand.get()), {}});
    });
    for (auto &[tile, products] : cuts) {
      auto type = cast<RankedTensorType>(tile.getType());
      bool isOperand = !products.empty();
      result.channels.push_back(
          {.kind = isOperand ? ChannelKind::Published : ChannelKind::Value,
           .slotTypes = {isOperand ? operandSlot(tile) : SharedType::get(type.getShape(), type.getElementType())},
           .tile = tile,
           .readers = products});
    }
    return success();
  }

  /// Returns whether the op reads or gives what depends on a product of the consumers.
  bool isOfConsumers(Operation *op) const {
    auto depends = [&](Value value) { return ofSecond.contains(value); };
    return llvm::any_of(op->getOperands(), depends) || llvm::any_of(op->getResults(), depends);
  }

  /// Returns whether the producer warpgroup computes the tile. Numbers never depend on tiles.
  bool isPublished(Value value) const {
    return isa<RankedTensorType>(value.getType()) && ofFirst.contains(value) && !ofSecond.contains(value);
  }

  /// Returns the tile before ops that compute nothing: it is no larger, and the reader repeats these ops.
  Value cutOf(Value value) const {
    Operation *op = value.getDefiningOp();
    bool moves = op && isa<tile::BroadcastOp, tile::ReshapeOp, CvtLayoutOp>(op) && !costOf(op).computes();
    return moves && isPublished(op->getOperand(0)) ? cutOf(op->getOperand(0)) : value;
  }

  tile::KernelOp kernel;
  RolePartition result;
  DenseSet<Value> ofFirst, ofSecond; ///< values that depend on products of the producer warpgroup, and of the consumers
};
} // namespace

FailureOr<RolePartition> partitionRoles(tile::KernelOp kernel) { return Partitioning(kernel).run(); }

} // namespace kpkg::kgpu
