// Splits a kernel into a thread that copies the operands of its products and warpgroups that compute.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %k ... iter_args(%s = %zeros) { %a = tile.load %x[%m, %k]; %b = tile.load %y[%k, %n]; tile.dot %a, %b, %s }
// After:  %ring = kgpu.ring ... : !kgpu.ring<4>
//         kgpu.roles load {
//           scf.for %k ... iter_args(%use = ...) { kgpu.acquire %ring[%use]; kgpu.tensor_load %x[%m, %k] ...; kgpu.tensor_load %y ... }
//         } compute {
//           scf.for %k ... iter_args(%s = ub.poison, %use = ...) {
//             kgpu.await %ring[%use]; kgpu.wgmma %left, %right, %s adds (%k is not the first); kgpu.wgmma_wait; kgpu.release %ring[%use] }
//         }
//
// On entry: a kernel with `kgpu.consumers` and layouts, without tile.for_tiles; all its products are `streamedDots`. On exit: no tile.dot
// is left; what the load role does not need is gone from it. Rings have as many slots as shared memory holds, at most `kMostSlots`, or as
// many as the kernel's @schedule(stages=) says. An accumulator that starts at zero does so by its first product not adding: registers
// that are set to zero before would stand between ptxas and products that run while others are issued.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/async/StreamedDots.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <map>

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUSPLITROLES
#include "dialect/kgpu/Passes.h.inc"

namespace {
constexpr int64_t kMostSlots = 8;
/// Shared memory that is left for barriers and partial sums.
constexpr int64_t kReservedBytes = 2048;
constexpr int64_t kPanelBytes = 128;

layout::SharedLayout panels(ArrayRef<int64_t> shape, unsigned panelDim, unsigned elementBytes) {
  if (panelDim == 1)
    return cantFail(layout::SharedLayout::tma(shape, elementBytes, layout::Swizzle::B128));
  return layout::transposed(cantFail(layout::SharedLayout::tma({shape[1], shape[0]}, elementBytes, layout::Swizzle::B128)));
}

/// An operand that is copied ahead, and where it is put.
struct Member {
  StreamedOperand operand;
  Value tile;      ///< what the product reads in the source
  SharedType slot; ///< one slot
  Value buffers;   ///< all of them
  Value filled;    ///< the slot that the compute role reads
};

/// Operands that are copied together: those of one product whose loads stand in one block.
struct Stream {
  tile::DotOp dot;
  Operation *anchor; ///< the op of the loads' block that is or contains the product: filled slots are awaited before it and released after it
  SmallVector<Member, 2> members;
  Value ring, use;      ///< `use` is carried by the loops around the anchor
  unsigned carried = 0; ///< as this iteration argument of the innermost one

  int64_t bytes() const {
    int64_t sum = 0;
    for (const Member &member : members)
      sum += member.slot.getSizeBytes();
    return sum;
  }
};

Member memberFor(const StreamedOperand &operand, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  unsigned bytes = elementBytes(type.getElementType());
  return {operand, tile, SharedType::get(type.getShape(), type.getElementType(), panels(type.getShape(), operand.panelDim, bytes)), {}, {}};
}

class Splitter {
public:
  explicit Splitter(tile::KernelOp kernel)
      : kernel(kernel), rewriter(kernel.getContext()), loc(kernel.getLoc()), body(kernel.getBody().front()) {}

  LogicalResult run() {
    products = streamedDots(kernel, targetOf(kernel));
    if (products.empty())
      return kernel.emitError("has warpgroups that compute, but no product whose operands can be copied by themselves");
    for (StreamedDot &product : products)
      findStreams(product);
    Operation *first = firstOfRoles();
    rewriter.setInsertionPoint(first);
    if (failed(makeRings()))
      return failure();
    zero = arith::ConstantIntOp::create(rewriter, loc, 0, 32);
    for (Stream &stream : streams)
      countUses(stream);
    for (Stream &stream : streams) { // later ones have replaced the loops of earlier ones
      if (auto loop = dyn_cast<scf::ForOp>(stream.dot->getParentOp()); loop && stream.anchor != stream.dot.getOperation())
        stream.anchor = stream.members.front().operand.load->getBlock()->findAncestorOpInBlock(*stream.dot);
      auto loop = dyn_cast<scf::ForOp>(stream.anchor->getParentOp());
      stream.use = loop ? Value(loop.getRegionIterArg(stream.carried)) : zero;
    }
    first = firstOfRoles(); // loops were replaced
    auto roles = RolesOp::create(rewriter, loc);
    Block *compute = rewriter.createBlock(&roles.getCompute()), *load = rewriter.createBlock(&roles.getLoad());
    rewriter.setInsertionPoint(first);
    roles->moveBefore(first);
    compute->getOperations().splice(compute->end(), body.getOperations(), first->getIterator(), body.getTerminator()->getIterator());
    IRMapping mapping;
    rewriter.setInsertionPointToEnd(load);
    for (Operation &op : *compute)
      rewriter.clone(op, mapping);
    for (Stream &stream : streams)
      copyOperands(stream, mapping);
    for (Stream &stream : streams)
      awaitOperands(stream);
    for (StreamedDot &product : products)
      multiply(product, mapping);
    strip(*load);
    return simplify(roles);
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(rewriter, loc, value); }

  void findStreams(StreamedDot &product) {
    for (auto [operand, tile] : {std::pair(&product.lhs, product.dot.getLhs()), std::pair(&product.rhs, product.dot.getRhs())}) {
      if (!*operand)
        continue;
      Operation *anchor = (*operand)->load->getBlock()->findAncestorOpInBlock(*product.dot);
      if (streams.empty() || streams.back().dot != product.dot || streams.back().anchor != anchor)
        streams.push_back({product.dot, anchor, {}, {}, {}});
      streams.back().members.push_back(memberFor(**operand, tile));
    }
  }

  /// The first op that not every thread may run: all before it are scalars.
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

  /// As many slots for each stream as shared memory holds; what is copied less often than others gets one.
  FailureOr<SmallVector<int64_t>> slotCounts() {
    int64_t taken = kReservedBytes;
    kernel.walk([&](AllocOp alloc) { taken += cast<SharedType>(alloc.getResult().getType()).getSizeBytes(); });
    unsigned deepest = 0;
    for (Stream &stream : streams)
      deepest = std::max(deepest, loopsAround(stream.anchor));
    int64_t often = 0, seldom = 0;
    for (Stream &stream : streams)
      (loopsAround(stream.anchor) == deepest ? often : seldom) += stream.bytes();
    int64_t room = (targetOf(kernel).sharedPerCta - taken - seldom) / often, slots = std::min(kMostSlots, room);
    if (DictionaryAttr hints = kernel.getScheduleAttr())
      if (auto stages = hints.getAs<IntegerAttr>("stages"))
        slots = std::min<int64_t>(room, stages.getInt());
    if (slots < 2)
      return kernel.emitError() << "needs " << taken + seldom + 2 * often << " bytes of shared memory for operands that are copied ahead";
    SmallVector<int64_t> counts;
    for (Stream &stream : streams)
      counts.push_back(loopsAround(stream.anchor) == deepest ? slots : 1);
    return counts;
  }

  LogicalResult makeRings() {
    FailureOr<SmallVector<int64_t>> counts = slotCounts();
    if (failed(counts))
      return failure();
    for (auto [stream, slots] : llvm::zip(streams, *counts)) {
      for (Member &member : stream.members) {
        SmallVector<int64_t> shape(member.slot.getShape());
        shape.insert(shape.begin(), slots);
        auto type = SharedType::get(shape, member.slot.getElementType(), layout::withSlots(*member.slot.getMemory(), slots));
        member.buffers = AllocOp::create(rewriter, loc, type, IntegerAttr());
      }
      Value barriers = AllocOp::create(rewriter, loc, SharedType::get({2, slots}, rewriter.getI64Type()), IntegerAttr());
      stream.ring = RingOp::create(rewriter, loc, RingType::get(rewriter.getContext(), slots), barriers);
    }
    return success();
  }

  /// Makes the loops around a stream carry how often it has been filled.
  void countUses(Stream &stream) {
    SmallVector<scf::ForOp> loops;
    for (Operation *parent = stream.members.front().operand.load->getParentOp(); parent != kernel; parent = parent->getParentOp())
      loops.push_back(cast<scf::ForOp>(parent));
    Value use = zero;
    for (scf::ForOp &loop : llvm::reverse(loops)) {
      FailureOr<LoopLikeOpInterface> carrying = loop.replaceWithAdditionalYields(
          rewriter, use, /*replaceInitOperandUsesInLoop=*/false,
          [](OpBuilder &, Location, ArrayRef<BlockArgument> arguments) { return SmallVector<Value>(arguments); });
      loop = cast<scf::ForOp>(carrying->getOperation());
      use = loop.getRegionIterArgs().back();
    }
    if (loops.empty())
      return;
    stream.carried = loops.front().getNumRegionIterArgs() - 1;
    Operation *yield = loops.front().getBody()->getTerminator();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(yield);
    Value one = arith::ConstantIntOp::create(rewriter, loc, 1, 32);
    yield->setOperand(yield->getNumOperands() - 1, arith::AddIOp::create(rewriter, loc, use, one));
    for (auto [inner, outer] : llvm::zip(ArrayRef(loops).drop_back(), ArrayRef(loops).drop_front())) {
      Operation *end = scf::ForOp(outer).getBody()->getTerminator();
      end->setOperand(end->getNumOperands() - 1, scf::ForOp(inner).getResults().back());
    }
  }

  Value slotOf(const Member &member, Value use) {
    int64_t slots = cast<SharedType>(member.buffers.getType()).getShape().front();
    if (slots == 1)
      return SlotOp::create(rewriter, loc, member.slot, member.buffers, constant(0));
    Value count = arith::ConstantIntOp::create(rewriter, loc, slots, 32);
    Value index = arith::IndexCastUIOp::create(rewriter, loc, rewriter.getIndexType(), arith::RemUIOp::create(rewriter, loc, use, count));
    return SlotOp::create(rewriter, loc, member.slot, member.buffers, index);
  }

  /// Copies one operand, panel by panel.
  void copy(const Member &member, Value ring, Value use, const IRMapping &mapping) {
    const TensorView &place = member.operand.place;
    int64_t bytes = member.slot.getElementBytes(), width = kPanelBytes / bytes, extent = place.box[place.unit];
    SmallVector<int64_t> box = place.box;
    box[place.unit] = width;
    int64_t panelBytes = llvm::product_of(box) * bytes;
    unsigned map = addTensorMap(kernel, TensorMapAttr::get(rewriter.getContext(), place.argument.getArgNumber(), box, kPanelBytes));
    Value slot = slotOf(member, use);
    SmallVector<Value> offsets;
    for (Value offset : place.offsets)
      offsets.push_back(mapping.lookupOrDefault(offset));
    Value begin = offsets[place.unit];
    for (int64_t panel = 0; panel < extent / width; ++panel) {
      offsets[place.unit] =
          panel == 0 ? begin : arith::AddIOp::create(rewriter, loc, begin, constant(panel * width)).getResult();
      TensorLoadOp::create(rewriter, loc, place.argument, offsets, map, slot, panel * panelBytes, ring, use);
    }
  }

  void copyOperands(Stream &stream, const IRMapping &mapping) {
    rewriter.setInsertionPoint(mapping.lookup(stream.anchor));
    Value use = mapping.lookupOrDefault(stream.use);
    AcquireOp::create(rewriter, loc, stream.ring, use, stream.bytes());
    for (const Member &member : stream.members)
      copy(member, stream.ring, use, mapping);
  }

  void awaitOperands(Stream &stream) {
    rewriter.setInsertionPoint(stream.anchor);
    AwaitOp::create(rewriter, loc, stream.ring, stream.use);
    for (Member &member : stream.members) {
      member.filled = slotOf(member, stream.use);
      filled[{stream.dot, member.tile.getAsOpaquePointer()}] = member.filled;
    }
    rewriter.setInsertionPointAfter(stream.anchor);
    ReleaseOp::create(rewriter, loc, stream.ring, stream.use);
  }

  void multiply(StreamedDot &product, const IRMapping &mapping) {
    tile::DotOp dot = product.dot;
    auto copied = cast<tile::DotOp>(mapping.lookup(dot.getOperation()));
    rewriter.replaceOp(copied, copied.getAccumulator());
    rewriter.setInsertionPoint(dot);
    Value left = product.lhs ? filled.at({dot, dot.getLhs().getAsOpaquePointer()}) : dot.getLhs(), right = filled.at({dot, dot.getRhs().getAsOpaquePointer()});
    Value adds = whetherAdds(dot);
    Value started = WgmmaOp::create(rewriter, loc, left, right, dot.getAccumulator(), adds);
    Value done = WgmmaWaitOp::create(rewriter, loc, 0, started).getResult(0);
    rewriter.replaceOp(dot, done);
  }

  /// i1: whether the product adds to its accumulator. One that is zero gets no value at all.
  Value whetherAdds(tile::DotOp dot) {
    if (isZero(dot.getAccumulator())) {
      dot.getAccumulatorMutable().assign(ub::PoisonOp::create(rewriter, loc, dot.getType()));
      return arith::ConstantIntOp::create(rewriter, loc, 0, 1);
    }
    auto argument = dyn_cast<BlockArgument>(dot.getAccumulator());
    auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
    if (!loop || dot->getBlock() != loop.getBody() || !isZero(loop.getTiedLoopInit(argument)->get()) ||
        loop.getTiedLoopYieldedValue(argument)->get() != dot.getResult() || !argument.hasOneUse())
      return arith::ConstantIntOp::create(rewriter, loc, 1, 1);
    OpOperand *start = loop.getTiedLoopInit(argument);
    Value zeros = start->get();
    Value adds = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, loop.getInductionVar(), loop.getLowerBound());
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(loop);
    start->set(ub::PoisonOp::create(rewriter, loc, zeros.getType()));
    // A loop that never runs leaves zeros.
    rewriter.setInsertionPointAfter(loop);
    Value result = loop.getTiedLoopResult(argument);
    Value runs = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
    auto chosen = arith::SelectOp::create(rewriter, loc, runs, result, zeros);
    result.replaceAllUsesExcept(chosen, chosen);
    return adds;
  }

  /// Takes away what does not lead to copies. Tiles that loops carry lead to none.
  void strip(Block &load) {
    SmallVector<Operation *> effects;
    load.walk([&](Operation *op) {
      if (auto loop = dyn_cast<scf::ForOp>(op))
        for (auto [argument, yielded] : llvm::zip(loop.getRegionIterArgs(), *loop.getYieldedValuesMutable()))
          if (isa<RankedTensorType>(argument.getType()))
            yielded.set(argument);
      if (isa<tile::StoreOp, tile::ScatterOp, TensorStoreOp>(op))
        effects.push_back(op);
    });
    for (Operation *op : effects)
      rewriter.eraseOp(op);
  }

  LogicalResult simplify(RolesOp roles) {
    RewritePatternSet patterns(kernel.getContext());
    scf::ForOp::getCanonicalizationPatterns(patterns, kernel.getContext());
    FrozenRewritePatternSet frozen(std::move(patterns));
    return failure(failed(applyPatternsGreedily(roles.getLoad(), frozen)) || failed(applyPatternsGreedily(roles.getCompute(), frozen)));
  }

  tile::KernelOp kernel;
  IRRewriter rewriter;
  Location loc;
  Block &body;
  Value zero;
  std::vector<StreamedDot> products;
  std::vector<Stream> streams;
  std::map<std::pair<Operation *, void *>, Value> filled; ///< by product and operand
};

struct SplitRoles final : impl::KgpuSplitRolesBase<SplitRoles> {
  void runOnOperation() override {
    if (getLaunch(getOperation()).consumers != 0 && failed(Splitter(getOperation()).run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace kpkg::kgpu
