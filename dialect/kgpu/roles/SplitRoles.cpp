// Splits a kernel into a producer warp, which copies operands of products, and consumer warpgroups, which compute.
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
// On entry: a kernel whose launch has `consumers` and layouts, without tile.for_tiles; all its products are
// `streamedDots`. On exit: no tile.dot is left, and the producer warp has only the code that its copies need.
//
// RingSlots.h describes how many slots rings have. A left operand of f32 that is contiguous along M is loaded from its
// slot to registers first. A right operand is not copied again if it is the first columns of an operand that an
// earlier product reads. An accumulator that starts at zero is not initialised: its first product does not add.
// Registers that are set to zero would keep ptxas from overlapping the product with others that are in flight.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/CopiedOperands.h"
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/kgpu/analysis/StreamedDots.h"
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "dialect/kgpu/ir/RemarkText.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/kgpu/roles/Accumulators.h"
#include "dialect/kgpu/roles/RingSlots.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUSPLITROLES
#include "dialect/kgpu/Passes.h.inc"

namespace {
constexpr int64_t kPanelBytes = 128;

constexpr Optimisation kCopies{"kgpu-split-roles", "operand copied ahead"};

/// A ring buffer, shared by streams of the same views and boxes.
struct Ring {
  SmallVector<unsigned> streams;
  SmallVector<SharedType, 2> slots; ///< one for each operand
  SmallVector<Value, 2> buffers;
  Value ring;

  int64_t bytes() const {
    int64_t sum = 0;
    for (SharedType slot : slots)
      sum += slot.getSizeBytes();
    return sum;
  }
};

/// A tile that warpgroups compute in parts and then read as a whole.
struct SharedTile {
  Value tile;
  Value buffer, ring;
  PublishAllOp share; ///< holds the number of this use of the ring
};

class Splitter {
public:
  explicit Splitter(tile::KernelOp kernel)
      : kernel(kernel), rewriter(kernel.getContext()), loc(kernel.getLoc()), body(kernel.getBody().front()) {}

  LogicalResult run() {
    products = streamedDots(kernel, targetOf(kernel));
    if (products.empty())
      return kernel.emitError("has warpgroups that compute, but no product whose operands can be copied by themselves");
    for (StreamedDot &product : products)
      if (const StreamedOperand *whole = wholeOf(product, products))
        product.rhs->load = whole->load;
    streams = streamsOf(kernel, products);
    findRings();
    for (const StreamedDot &product : products)
      if (product.shared && llvm::none_of(shared, [&](const SharedTile &one) { return one.tile == product.shared; }))
        shared.push_back({product.shared, {}, {}, {}});
    Operation *first = firstOfRoles();
    rewriter.setInsertionPoint(first);
    if (failed(makeRings()))
      return failure();
    zero = arith::ConstantIntOp::create(rewriter, loc, 0, 32);
    for (unsigned ring = 0; ring < rings.size(); ++ring)
      countUses(ring, body, zero);
    first = firstOfRoles(); // loops were replaced, and with them the values that they carry
    for (Stream &stream : streams)
      for (Member &member : stream.members)
        member.operand.place = *(member.isRow() ? rowPlace(cast<tile::LoadOp>(member.operand.load))
                                                : streamedPlace(member.operand.load).toOptional());
    auto roles = RolesOp::create(rewriter, loc);
    Block *compute = rewriter.createBlock(&roles.getConsumers()),
          *load = rewriter.createBlock(&roles.getProducerWarp());
    rewriter.setInsertionPoint(first);
    roles->moveBefore(first);
    compute->getOperations().splice(compute->end(), body.getOperations(), first->getIterator(),
                                    body.getTerminator()->getIterator());
    IRMapping mapping;
    rewriter.setInsertionPointToEnd(load);
    for (Operation &op : *compute)
      rewriter.clone(op, mapping);
    for (Stream &stream : streams)
      copyOperands(stream, mapping);
    for (Stream &stream : streams)
      findFilled(stream);
    for (SharedTile &one : shared)
      (void)countShared(one, *compute, zero);
    for (StreamedDot &product : products)
      multiply(product, mapping);
    strip(*load);
    return simplify(roles);
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(rewriter, loc, value); }

  void findRings() {
    for (auto [number, stream] : llvm::enumerate(streams)) {
      auto *ring =
          llvm::find_if(rings, [&](const Ring &one) { return haveOneRing(streams[one.streams.front()], stream); });
      if (ring == rings.end()) {
        ring = &rings.emplace_back();
        for (const Member &member : stream.members)
          ring->slots.push_back(member.slot);
      }
      stream.ring = ring - rings.begin();
      ring->streams.push_back(number);
    }
  }

  /// Returns the first op that not every thread may run: an op with regions or effects, or on tiles.
  Operation *firstOfRoles() {
    for (Operation &op : body)
      if (op.getNumRegions() != 0 || (!isMemoryEffectFree(&op) && !isa<AllocOp, RingOp>(op)) ||
          (llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>)))
        return &op;
    llvm_unreachable("a product gives a tile");
  }

  unsigned loopsAround(Operation *op) {
    unsigned depth = 0;
    for (Operation *parent = op->getParentOp(); parent != kernel; parent = parent->getParentOp())
      ++depth;
    return depth;
  }

  unsigned depthOf(const Ring &ring) {
    unsigned deepest = 0;
    for (unsigned number : ring.streams)
      deepest = std::max(deepest, loopsAround(streams[number].begin()));
    return deepest;
  }

  LogicalResult makeRings() {
    auto demands =
        llvm::map_to_vector(rings, [&](const Ring &ring) { return RingDemand{ring.bytes(), depthOf(ring)}; });
    int64_t sharedBytes = 0;
    for (const SharedTile &one : shared)
      sharedBytes += slotOfShared(one).getSizeBytes();
    FailureOr<RingSlots> counts = chooseSlots(kernel, products, demands, sharedBytes);
    if (failed(counts))
      return failure();
    for (auto [ring, slots] : llvm::zip(rings, counts->ofRings)) {
      for (SharedType slot : ring.slots) {
        SmallVector<int64_t> shape(slot.getShape());
        shape.insert(shape.begin(), slots);
        auto type = SharedType::get(shape, slot.getElementType(), layout::withSlots(*slot.getMemory(), slots));
        ring.buffers.push_back(AllocOp::create(rewriter, loc, type, IntegerAttr()));
      }
      Value barriers =
          AllocOp::create(rewriter, loc, SharedType::get({2, slots}, rewriter.getI64Type()), IntegerAttr());
      ring.ring = RingOp::create(rewriter, loc, RingType::get(rewriter.getContext(), slots), barriers);
      for (unsigned number : ring.streams)
        for (const Member &member : streams[number].members)
          remarkApplied(member.operand.load, kCopies,
                        "by a warp of its own, to shared memory with room for " + counted(slots, "tile"));
    }
    int64_t sharedSlots = counts->ofShared;
    for (SharedTile &one : shared) {
      one.buffer = AllocOp::create(rewriter, loc, ringOf(sharedSlots, slotOfShared(one)), IntegerAttr());
      Value barriers =
          AllocOp::create(rewriter, loc, SharedType::get({2, sharedSlots}, rewriter.getI64Type()), IntegerAttr());
      one.ring =
          RingOp::create(rewriter, loc, RingType::get(rewriter.getContext(), sharedSlots), barriers, /*shared=*/true);
    }
    return success();
  }

  /// Returns the type of one slot of a shared tile, in the layout of a row-major left operand.
  static SharedType slotOfShared(const SharedTile &one) {
    auto type = cast<RankedTensorType>(one.tile.getType());
    return SharedType::get(type.getShape(), type.getElementType(),
                           *panelsOf(type.getShape(), 1, elementBytes(type.getElementType())));
  }

  /// Publishes a shared tile at its computation, and numbers these uses as countUses() does.
  Value countShared(SharedTile &one, Block &block, Value count) {
    Operation *source = one.tile.getDefiningOp();
    if (source->getBlock() == &block) {
      rewriter.setInsertionPointAfter(source);
      auto type = cast<RankedTensorType>(one.tile.getType());
      layout::Layout wanted = wgmmaAccumulator(type.getShape(), getLaunch(kernel).consumers);
      Value tile = one.tile;
      if (layoutOf(type) != wanted)
        tile = CvtLayoutOp::create(rewriter, loc, withLayout(type, wanted), tile);
      one.share = PublishAllOp::create(rewriter, source->getLoc(), tile,
                                       useSlot(rewriter, loc, slotOfShared(one), one.buffer, count), one.ring, count);
      return arith::AddIOp::create(rewriter, loc, count, arith::ConstantIntOp::create(rewriter, loc, 1, 32));
    }
    auto loop = cast<scf::ForOp>(block.findAncestorOpInBlock(*source));
    loop = carryAlso(loop, count);
    yieldLast(loop, countShared(one, *loop.getBody(), loop.getRegionIterArgs().back()));
    return loop.getResults().back();
  }

  /// Numbers the uses of a ring in a block from `count` on, and returns the count after it. Loops carry the count.
  Value countUses(unsigned ring, Block &block, Value count) {
    for (Operation *op = &block.front(); op; op = op->getNextNode()) {
      if (auto loop = dyn_cast<scf::ForOp>(op); loop && usesRing(loop, ring)) {
        loop = carryAlso(loop, count);
        op = loop;
        yieldLast(loop, countUses(ring, *loop.getBody(), loop.getRegionIterArgs().back()));
        count = loop.getResults().back();
      }
      for (unsigned number : rings[ring].streams) {
        Stream &stream = streams[number];
        if (stream.begin() == op) {
          // The await op keeps the number as its operand, because loops are replaced later.
          rewriter.setInsertionPoint(op);
          stream.await = AwaitOp::create(rewriter, loc, rings[ring].ring, count);
        }
        if (stream.end() == op) {
          rewriter.setInsertionPointAfter(op);
          ReleaseOp::create(rewriter, loc, rings[ring].ring, count);
          count = arith::AddIOp::create(rewriter, loc, count, arith::ConstantIntOp::create(rewriter, loc, 1, 32));
        }
      }
    }
    return count;
  }

  /// Returns whether a stream of the ring begins inside of the loop.
  bool usesRing(scf::ForOp loop, unsigned ring) {
    return llvm::any_of(rings[ring].streams,
                        [&](unsigned number) { return loop->isProperAncestor(streams[number].begin()); });
  }

  Value slotOf(const Stream &stream, unsigned member, Value use) {
    const Ring &ring = rings[stream.ring];
    return useSlot(rewriter, loc, ring.slots[member], ring.buffers[member], use);
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

  /// Clears rows of the box that lie outside of the slice, before products read them.
  void clear(const Member &member, Value slot) {
    const TensorView &place = member.operand.place;
    auto [begin, end] = boundsOf(place.slice, IRMapping());
    Value first = place.offsets[place.slicedDim], length = arith::SubIOp::create(rewriter, loc, end, begin);
    Value before = arith::SubIOp::create(rewriter, loc, constant(0), first),
          rest = arith::SubIOp::create(rewriter, loc, length, first);
    ClearOutsideOp::create(rewriter, loc, slot, before, rest);
  }

  /// Copies one operand, panel by panel.
  void copy(const Stream &stream, unsigned number, Value use, const IRMapping &mapping) {
    const Member &member = stream.members[number];
    const TensorView &place = member.operand.place;
    int64_t bytes = member.slot.getElementBytes(), extent = place.box[place.unit],
            width = member.isRow() ? extent : kPanelBytes / bytes;
    SmallVector<int64_t> box = place.box;
    box[place.unit] = width;
    int64_t panelBytes = llvm::product_of(box) * bytes;
    unsigned swizzle = member.isRow() ? 0 : kPanelBytes;
    unsigned map = addTensorMap(
        kernel, TensorMapAttr::get(rewriter.getContext(), place.argument.getArgNumber(), box, swizzle, place.window));
    Value slot = slotOf(stream, number, use), ring = rings[stream.ring].ring;
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

  void copyOperands(Stream &stream, const IRMapping &mapping) {
    auto await = cast<AwaitOp>(mapping.lookup(stream.await.getOperation()));
    rewriter.setInsertionPoint(await);
    const Ring &ring = rings[stream.ring];
    AcquireOp::create(rewriter, loc, ring.ring, await.getUse(), ring.bytes());
    for (unsigned member = 0; member < stream.members.size(); ++member)
      copy(stream, member, await.getUse(), mapping);
  }

  void findFilled(Stream &stream) {
    rewriter.setInsertionPointAfter(stream.await);
    for (auto [number, member] : llvm::enumerate(stream.members)) {
      Value slot = slotOf(stream, number, stream.await.getUse());
      filled[member.operand.load] = {slot, member.operand.isTransposed};
      if (member.operand.place.slice)
        clear(member, slot);
      if (!member.isRow())
        continue;
      auto load = cast<tile::LoadOp>(member.operand.load);
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(load);
      rewriter.replaceOpWithNewOp<LocalLoadOp>(load, load.getType(), slot, DenseI64ArrayAttr());
    }
  }

  /// Returns the slot of an operand as its product reads it.
  Value reading(const StreamedOperand &operand) {
    auto [slot, isTransposed] = filled.at(operand.load);
    return isTransposed == operand.isTransposed ? slot : TransposeBufferOp::create(rewriter, loc, slot).getResult();
  }

  /// Returns the buffer of a shared tile. It is the transpose, once all of the tile is published, or the warpgroup's
  /// own rows. Returns null if the tile is not shared.
  Value readingShared(Value tile, bool isTransposed) {
    auto *one = llvm::find_if(shared, [&](const SharedTile &other) { return other.tile == tile; });
    if (one == shared.end())
      return {};
    PublishAllOp share = one->share;
    if (isTransposed)
      AwaitOp::create(rewriter, loc, one->ring, share.getUse());
    Value slot = useSlot(rewriter, loc, slotOfShared(*one), one->buffer, share.getUse());
    return isTransposed ? TransposeBufferOp::create(rewriter, loc, slot).getResult() : slot;
  }

  void multiply(StreamedDot &product, const IRMapping &mapping) {
    tile::DotOp dot = product.dot;
    auto copied = cast<tile::DotOp>(mapping.lookup(dot.getOperation()));
    rewriter.replaceOp(copied, copied.getAccumulator());
    rewriter.setInsertionPoint(dot);
    Value left = product.lhs ? reading(*product.lhs)
                             : readingShared(product.shared ? product.shared : dot.getLhs(), bool(product.shared));
    if (!left)
      left = dot.getLhs();
    if (product.goesThroughRegisters()) {
      auto type = cast<RankedTensorType>(dot.getLhs().getType());
      layout::Layout fragments =
          wgmmaLeftOperand(type.getShape(), elementBytes(type.getElementType()), getLaunch(kernel).consumers);
      left = LocalLoadOp::create(rewriter, loc, withLayout(type, fragments), left, DenseI64ArrayAttr());
    }
    Value right = reading(*product.rhs);
    Value adds = whetherAdds(rewriter, dot);
    rewriter.setInsertionPoint(dot); // surrounding loops may have been replaced
    Value started =
        WgmmaOp::create(rewriter, dot.getLoc(), left, right, dot.getAccumulator(), adds, dot.getPositions());
    Value done = WgmmaWaitOp::create(rewriter, dot.getLoc(), 0, started).getResult(0);
    rewriter.replaceOp(dot, done);
  }

  /// Erases effects other than copies. Tiles that loops carry lead to no copies.
  void strip(Block &load) {
    SmallVector<Operation *> effects;
    load.walk([&](Operation *op) {
      if (auto loop = dyn_cast<scf::ForOp>(op))
        for (auto [argument, yielded] : llvm::zip(loop.getRegionIterArgs(), *loop.getYieldedValuesMutable()))
          if (isa<RankedTensorType>(argument.getType()))
            yielded.set(argument);
      if (isa<tile::StoreOp, tile::AddStoreOp, tile::ScatterOp, tile::AtomicOp, TensorStoreOp, AwaitOp, ReleaseOp>(op))
        effects.push_back(op);
    });
    for (Operation *op : effects)
      rewriter.eraseOp(op);
  }

  LogicalResult simplify(RolesOp roles) {
    RewritePatternSet patterns(kernel.getContext());
    scf::ForOp::getCanonicalizationPatterns(patterns, kernel.getContext());
    FrozenRewritePatternSet frozen(std::move(patterns));
    return failure(failed(applyPatternsGreedily(roles.getProducerWarp(), frozen)) ||
                   failed(applyPatternsGreedily(roles.getConsumers(), frozen)));
  }

  tile::KernelOp kernel;
  IRRewriter rewriter;
  Location loc;
  Block &body;
  Value zero;
  std::vector<StreamedDot> products;
  std::vector<Stream> streams;
  SmallVector<Ring, 2> rings;
  SmallVector<SharedTile, 1> shared;
  DenseMap<Operation *, std::pair<Value, bool>> filled; ///< by load: the slot, and whether it is transposed
};

struct SplitRoles final : impl::KgpuSplitRolesBase<SplitRoles> {
  void runOnOperation() override {
    if (getLaunch(getOperation()).consumers != 0 && failed(Splitter(getOperation()).run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace kpkg::kgpu
