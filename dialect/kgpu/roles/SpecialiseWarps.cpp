// Specialises warps: materialises a partition of a kernel into roles, which pass tiles through channels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %k ... iter_args(%s = %zeros) {
//           %a = tile.load %x[%m, %k]; %b = tile.load %y[%k, %n]; tile.dot %a, %b, %s }
// After:  %ring = kgpu.ring ... : !kgpu.ring<4>
//         kgpu.roles producer_warp {
//           scf.for %k ... iter_args(%use = ...) {
//             kgpu.acquire %ring[%use]; kgpu.tensor_load %x[%m, %k] ...; kgpu.tensor_load %y ... }
//         } consumers {
//           scf.for %k ... iter_args(%s = ub.poison, %use = ...) {
//             kgpu.await %ring[%use]; kgpu.wgmma %left, %right, %s adds (%k is not the first); kgpu.wgmma_wait;
//             kgpu.release %ring[%use] }
//         }
//
// With a producer warpgroup, which computes left operands of other products:
// Before: %s = tile.dot %q, %k ...; %p, %keep, %now = f(%s, %top); %o = tile.dot %p, %v, %sum * %keep
// After:  consumers {
//           scf.for ... iter_args(%sum, %use, %i) {
//             kgpu.await %keeps[%i]; %keep = kgpu.local_load ...; kgpu.release %keeps[%i]
//             kgpu.await %ring[%use]; kgpu.await %tiles[%i]; %o = kgpu.wgmma %tile, %slot, %sum * %keep; ...
//             kgpu.release %tiles[%i]; kgpu.release %ring[%use] } }
//         producers {
//           scf.for ... iter_args(%top, %use, %i) {
//             kgpu.await %ring[%use]; %s = kgpu.wgmma %q, %slot ...; ...; %p, %keep, %now = f(%s, %top)
//             kgpu.publish %keep to ... signals %keeps[%i]; kgpu.publish %p to ... signals %tiles[%i]
//             kgpu.release %ring[%use] } }
//
// On entry: a kernel whose launch has `consumers` and layouts, without tile.for_tiles. On exit: no tile.dot is left,
// every wait follows its product, and each role has only the code that its effects need.
//
// analysis/RolePartition.h tells which op goes to which role, and roles/PlanChannels.h how large channels are. Roles
// keep the order of the original program, so none waits for a later step of another.
//
// A left operand of f32 that is contiguous along M is loaded from its slot to registers first. A right operand is not
// copied again if it is the first columns of an operand that an earlier product reads. An accumulator that starts at
// zero is not initialised: its first product does not add. Registers that are set to zero would keep ptxas from
// overlapping the product with others that are in flight.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/kgpu/roles/Accumulators.h"
#include "dialect/kgpu/roles/PlanChannels.h"
#include "dialect/kgpu/roles/RoleCode.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUSPECIALISEWARPS
#include "dialect/kgpu/Passes.h.inc"

namespace {
constexpr int64_t kPanelBytes = 128;
constexpr int64_t kMostOfBox = 256; ///< elements along a dimension of a box (CUDA driver API, cuTensorMapEncodeTiled)

constexpr Optimisation kRoles{"kgpu-specialise-warps", "roles of warps"};

class Materialiser {
public:
  Materialiser(tile::KernelOp kernel, RolePartition &partition)
      : kernel(kernel), partition(partition), rewriter(kernel.getContext()), loc(kernel.getLoc()),
        body(kernel.getBody().front()) {}

  LogicalResult run() {
    for (Channel &channel : partition.channels)
      if (channel.kind == ChannelKind::Published || channel.kind == ChannelKind::Value)
        published.push_back({.channel = &channel, .mark = markTile(rewriter, channel.tile)});
    rewriter.setInsertionPoint(firstOfRoles());
    for (const Channel &channel : partition.channels)
      for (const ChannelRing &ring : rings.emplace_back(makeRings(rewriter, loc, channel)))
        for (Value buffer : ring.buffers)
          ringOfBuffer[buffer] = ring.ring;
    for (PublishedTile &tile : published)
      tile.rings = rings[tile.channel - partition.channels.data()];
    numberCopies();
    RolesOp roles = splitRoles();
    reportWork(roles);
    exchange(roles.getConsumers().front());
    for (StreamedDot &product : partition.products)
      multiply(product);
    if (!published.empty() && failed(splitProducers(roles)))
      return failure();
    strip(roles.getProducerWarp(), [](Operation *op) { return isa<AcquireOp, TensorLoadOp>(op); });
    if (failed(simplify(roles)))
      return failure();
    for (auto &[tile, read] : exchanged)
      if (read.isDelayed)
        delayProduct(rewriter, read);
    return success();
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(rewriter, loc, value); }

  /// Returns the first op that not every thread may run: an op with regions or effects, or on tiles.
  Operation *firstOfRoles() {
    for (Operation &op : body)
      if (op.getNumRegions() != 0 || (!isMemoryEffectFree(&op) && !isa<AllocOp, RingOp>(op)) ||
          (llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>)))
        return &op;
    llvm_unreachable("a product gives a tile");
  }

  const ChannelRing &ringOf(const Stream &stream) { return rings[stream.ring].front(); }

  /// Tells the author which units an iteration with products keeps busy.
  void reportWork(RolesOp roles) {
    auto textOf = [&](Role role) {
      const OpCost &cost = partition.work[size_t(role)];
      return std::to_string(cost.tensorCycles) + " cycles of tensor cores, " + std::to_string(cost.fp32Cycles) +
             " of FP32 units, " + std::to_string(cost.sfuCycles) + " of special function units";
    };
    std::string text = "in an iteration, a warp copies " +
                       std::to_string(partition.work[size_t(Role::ProducerWarp)].copiedBytes) +
                       " bytes, and the warpgroups that multiply take " + textOf(Role::Consumers);
    if (!published.empty())
      text += "; the warpgroup that computes operands takes " + textOf(Role::Producers);
    remarkApplied(roles, kRoles, text);
  }

  // Copied operands

  /// Awaits and releases the slots of copied operands around their products. Both roles then count the uses alike.
  void numberCopies() {
    for (Channel *channel : partition.channelsOf(ChannelKind::Copy)) {
      auto spans = llvm::map_to_vector(channel->streams, [&](unsigned number) {
        Stream &stream = partition.streams[number];
        return UseSpan(stream.members.front().operand.load, stream.first(), stream.dots.back());
      });
      FailureOr<SmallVector<Value>> uses = numberUses(rewriter, body, spans);
      assert(succeeded(uses) && "products with copied operands stand in loops only");
      for (auto [number, span, use] : llvm::zip(channel->streams, spans, *uses)) {
        Stream &stream = partition.streams[number];
        rewriter.setInsertionPoint(span.begin());
        stream.await = AwaitOp::create(rewriter, loc, ringOf(stream).ring, use);
        rewriter.setInsertionPointAfter(span.end());
        ReleaseOp::create(rewriter, loc, ringOf(stream).ring, use);
      }
    }
    // Loops were replaced, and with them the values that they carry.
    for (Stream &stream : partition.streams)
      for (Member &member : stream.members)
        member.operand.place = *(member.isRow() ? rowPlace(cast<tile::LoadOp>(member.operand.load))
                                                : streamedPlace(member.operand.load).toOptional());
    // The producer warp copies where the consumers await, so the places must be known there.
    for (Stream &stream : partition.streams)
      for (const Member &member : stream.members)
        for (Operation *op : addressOf(member, *stream.await->getBlock()))
          if (stream.await->isBeforeInBlock(op))
            op->moveBefore(stream.await);
  }

  /// Moves the kernel's code to the consumers, and copies it to the producer warp.
  RolesOp splitRoles() {
    Operation *first = firstOfRoles();
    rewriter.setInsertionPoint(first);
    auto roles = RolesOp::create(rewriter, loc);
    Block *compute = rewriter.createBlock(&roles.getConsumers()),
          *load = rewriter.createBlock(&roles.getProducerWarp());
    compute->getOperations().splice(compute->end(), body.getOperations(), first->getIterator(),
                                    body.getTerminator()->getIterator());
    IRMapping mapping;
    rewriter.setInsertionPointToEnd(load);
    for (Operation &op : *compute)
      rewriter.clone(op, mapping);
    for (Stream &stream : partition.streams)
      copyOperands(stream, mapping);
    for (Stream &stream : partition.streams)
      findFilled(stream);
    return roles;
  }

  /// Returns the begin and end of a slice, clipped to its view, in the role whose values `mapping` gives.
  std::pair<Value, Value> boundsOf(tile::SliceOp slice, const IRMapping &mapping) {
    Value extent =
        tile::DimOp::create(rewriter, loc, mapping.lookupOrDefault(Value(slice.getView())), slice.getDimension());
    auto within = [&](Value value, Value least) {
      Value some = arith::MaxSIOp::create(rewriter, loc, mapping.lookupOrDefault(value), least);
      return arith::MinSIOp::create(rewriter, loc, some, extent).getResult();
    };
    Value begin = within(slice.getBegin(), constant(0));
    return {begin, within(slice.getEnd(), begin)};
  }

  /// Copies one operand, panel by panel.
  void copy(const Stream &stream, unsigned number, Value use, const IRMapping &mapping) {
    const Member &member = stream.members[number];
    const TensorView &place = member.operand.place;
    int64_t bytes = member.slot.getElementBytes(), extent = place.box[place.unit],
            width = member.isRow() ? std::min(extent, kMostOfBox) : kPanelBytes / bytes;
    SmallVector<int64_t> box = place.box;
    box[place.unit] = width;
    int64_t panelBytes = llvm::product_of(box) * bytes;
    unsigned swizzle = member.isRow() ? 0 : kPanelBytes;
    unsigned map = addTensorMap(
        kernel, TensorMapAttr::get(rewriter.getContext(), place.argument.getArgNumber(), box, swizzle, place.window));
    Value slot = ringOf(stream).slotOf(rewriter, loc, use, number), ring = ringOf(stream).ring;
    auto mapped = [&](Value value) { return mapping.lookupOrDefault(value); };
    SmallVector<Value> offsets = llvm::map_to_vector(place.offsets, mapped),
                       taps = llvm::map_to_vector(place.taps, mapped);
    if (place.slice)
      offsets[place.slicedDim] =
          arith::AddIOp::create(rewriter, loc, boundsOf(place.slice, mapping).first, offsets[place.slicedDim]);
    Value begin = offsets[place.unit];
    for (int64_t panel = 0, count = llvm::divideCeil(extent, width); panel < count; ++panel) {
      offsets[place.unit] =
          panel == 0 ? begin : arith::AddIOp::create(rewriter, loc, begin, constant(panel * width)).getResult();
      TensorLoadOp::create(rewriter, member.operand.load->getLoc(), place.argument, offsets, taps, map, slot,
                           panel * panelBytes, ring, use, IntegerAttr());
    }
  }

  /// Fills the slots of a stream in the producer warp.
  void copyOperands(Stream &stream, const IRMapping &mapping) {
    auto await = cast<AwaitOp>(mapping.lookup(stream.await.getOperation()));
    rewriter.setInsertionPoint(await);
    AcquireOp::create(rewriter, loc, ringOf(stream).ring, await.getUse(), partition.channels[stream.ring].bytes());
    for (unsigned member = 0; member < stream.members.size(); ++member)
      copy(stream, member, await.getUse(), mapping);
  }

  /// Clears rows of the box that lie outside of the slice, before products read them.
  void clear(const Member &member, Value slot) {
    const TensorView &place = member.operand.place;
    auto [begin, end] = boundsOf(place.slice, IRMapping());
    Value first = place.offsets[place.slicedDim], length = arith::SubIOp::create(rewriter, loc, end, begin);
    Value before = arith::SubIOp::create(rewriter, loc, constant(0), first),
          rest = arith::SubIOp::create(rewriter, loc, length, first);
    ClearOutsideOp::create(rewriter, loc, slot, before, rest);
  }

  /// Finds the slots of a stream that the consumers read, and loads rows from them.
  void findFilled(Stream &stream) {
    rewriter.setInsertionPointAfter(stream.await);
    SmallVector<Value> slots;
    for (auto [number, member] : llvm::enumerate(stream.members)) {
      Value slot = ringOf(stream).slotOf(rewriter, loc, stream.await.getUse(), number);
      filled[member.operand.load] = {slot, member.operand.isTransposed};
      if (member.operand.place.slice)
        clear(member, slot);
      slots.push_back(slot);
    }
    for (auto [member, slot] : llvm::zip_equal(stream.members, slots)) {
      if (!member.isRow())
        continue;
      auto load = cast<tile::LoadOp>(member.operand.load);
      rewriter.setInsertionPoint(load);
      rewriter.replaceOpWithNewOp<LocalLoadOp>(load, load.getType(), slot, DenseI64ArrayAttr());
    }
  }

  // Exchanged tiles

  /// Publishes exchanged tiles where the consumers compute them.
  void exchange(Block &consumers) {
    for (auto [channel, ofChannel] : llvm::zip(partition.channels, rings)) {
      if (channel.kind != ChannelKind::Exchanged)
        continue;
      Operation *source = channel.tile.getDefiningOp();
      FailureOr<SmallVector<Value>> use = numberUses(rewriter, consumers, UseSpan(source));
      assert(succeeded(use) && "products of exchanged tiles stand in loops only");
      rewriter.setInsertionPointAfter(source);
      auto type = cast<RankedTensorType>(channel.tile.getType());
      layout::Layout wanted = wgmmaAccumulator(type.getShape(), getLaunch(kernel).consumers);
      Value tile = channel.tile;
      if (layoutOf(type) != wanted)
        tile = CvtLayoutOp::create(rewriter, loc, withLayout(type, wanted), tile);
      const ChannelRing &ring = ofChannel.front();
      Value slot = ring.slotOf(rewriter, loc, use->front());
      auto publication = PublishAllOp::create(rewriter, source->getLoc(), tile, slot, ring.ring, use->front());
      exchanged[channel.tile] = {.ring = &ring, .publication = publication, .isDelayed = channel.delay != 0};
    }
  }

  /// Returns the slot of an exchanged tile: its transpose, once all of the tile is published, or the warpgroup's own
  /// rows.
  Value readExchanged(ExchangedRead &read, bool isTransposed) {
    Value use = read.publication.getUse();
    if (!isTransposed)
      return read.ring->slotOf(rewriter, loc, use);
    read.await = AwaitOp::create(rewriter, loc, read.ring->ring, use);
    return TransposeBufferOp::create(rewriter, loc, read.ring->slotOf(rewriter, loc, use));
  }

  // Products

  /// Returns the slot of an operand as its product reads it.
  Value reading(const StreamedOperand &operand) {
    auto [slot, isTransposed] = filled.at(operand.load);
    if (isTransposed == operand.isTransposed)
      return slot;
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointAfterValue(slot);
    return TransposeBufferOp::create(rewriter, loc, slot);
  }

  void multiply(StreamedDot &product) {
    tile::DotOp dot = product.dot;
    rewriter.setInsertionPoint(dot);
    Value left = dot.getLhs();
    auto *read = exchanged.find(product.shared ? product.shared : left);
    if (product.lhs)
      left = reading(*product.lhs);
    else if (read != exchanged.end())
      left = readExchanged(read->second, bool(product.shared));
    if (product.goesThroughRegisters()) {
      auto type = cast<RankedTensorType>(dot.getLhs().getType());
      layout::Layout fragments = wgmmaLeftOperand(dot.getLhs(), getLaunch(kernel).consumers);
      left = LocalLoadOp::create(rewriter, loc, withLayout(type, fragments), left, DenseI64ArrayAttr());
    }
    Value right = reading(*product.rhs);
    Value adds = whetherAdds(rewriter, dot);
    rewriter.setInsertionPoint(dot); // surrounding loops may have been replaced
    auto started = WgmmaOp::create(rewriter, dot.getLoc(), left, right, dot.getAccumulator(), adds, dot.getPositions());
    if (product.shared)
      read->second.product = started;
    for (PublishedTile &tile : published)
      if (llvm::is_contained(tile.channel->readers, dot))
        tile.readers.push_back(started);
    rewriter.replaceOp(dot, WgmmaWaitOp::create(rewriter, dot.getLoc(), 0, started.getResult()).getResult(0));
  }

  // The producer warpgroup

  /// Copies the consumers' code to a producer warpgroup, and divides it between both.
  LogicalResult splitProducers(RolesOp roles) {
    for (PublishedTile &tile : published)
      if (tile.readers.empty())
        hoistComputation(tile.mark);
    Block &consumers = roles.getConsumers().front(), *producers = rewriter.createBlock(&roles.getProducers());
    IRMapping mapping;
    for (Operation &op : consumers)
      rewriter.clone(op, mapping);
    DenseSet<Operation *> ofConsumers = partition.consumerStores;
    for (Operation *store : partition.consumerStores)
      ofConsumers.insert(mapping.lookup(store));
    for (PublishedTile &tile : published) {
      tile.computed = cast<CvtLayoutOp>(mapping.lookup(tile.mark.getOperation()));
      if (failed(publish(rewriter, tile, *producers)) || failed(consume(rewriter, tile, consumers)))
        return failure();
    }
    strip(roles.getProducers(),
          [&](Operation *op) { return isa<PublishOp>(op) || (isStore(op) && !ofConsumers.contains(op)); });
    strip(roles.getConsumers(), [&](Operation *op) { return ofConsumers.contains(op); });
    return success();
  }

  void strip(Region &role, llvm::function_ref<bool(Operation *)> isKept) {
    stripRole(rewriter, role, ringOfBuffer, cleared, isKept);
  }

  LogicalResult simplify(RolesOp roles) {
    RewritePatternSet patterns(kernel.getContext());
    scf::ForOp::getCanonicalizationPatterns(patterns, kernel.getContext());
    FrozenRewritePatternSet frozen(std::move(patterns));
    return failure(llvm::any_of(roles->getRegions(), [&](Region &role) {
      return !role.empty() && failed(applyPatternsGreedily(role, frozen));
    }));
  }

  tile::KernelOp kernel;
  RolePartition &partition;
  IRRewriter rewriter;
  Location loc;
  Block &body;
  SmallVector<SmallVector<ChannelRing, 2>> rings; ///< by channel
  DenseMap<Value, Value> ringOfBuffer;
  DenseMap<Operation *, std::pair<Value, bool>> filled; ///< by load: the slot, and whether it is transposed
  llvm::MapVector<Value, ExchangedRead> exchanged;      ///< by tile
  SmallVector<PublishedTile, 4> published;
  DenseSet<Value> cleared; ///< rings whose slots the producer warpgroup reads, and clears in part, before it publishes
};

struct SpecialiseWarps final : impl::KgpuSpecialiseWarpsBase<SpecialiseWarps> {
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    FailureOr<RolePartition> partition = partitionRoles(kernel);
    if (failed(partition) || failed(planChannels(kernel, *partition)) || failed(Materialiser(kernel, *partition).run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace kpkg::kgpu
