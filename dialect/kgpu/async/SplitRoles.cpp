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

/// The buffers of one operand: one slot, and all of them.
struct OperandBuffers {
  SharedType slot;
  Value all;
};

/// What a product's operands go through.
struct Stream {
  StreamedDot product;
  OperandBuffers lhs, rhs;
  Value ring, use;      ///< `use` is carried by the loops around the product
  unsigned carried = 0; ///< as this iteration argument of the innermost one
};

SharedType slotType(const StreamedOperand &operand, Value value) {
  auto tile = cast<RankedTensorType>(value.getType());
  unsigned bytes = elementBytes(tile.getElementType());
  return SharedType::get(tile.getShape(), tile.getElementType(), panels(tile.getShape(), operand.panelDim, bytes));
}

class Splitter {
public:
  explicit Splitter(tile::KernelOp kernel)
      : kernel(kernel), rewriter(kernel.getContext()), loc(kernel.getLoc()), body(kernel.getBody().front()) {}

  LogicalResult run() {
    for (const StreamedDot &product : streamedDots(kernel, targetOf(kernel)))
      streams.push_back({product, {}, {}, {}, {}});
    if (streams.empty())
      return kernel.emitError("has warpgroups that compute, but no product whose operands can be copied by themselves");
    Operation *first = firstOfRoles();
    rewriter.setInsertionPoint(first);
    if (failed(makeRings()))
      return failure();
    zero = arith::ConstantIntOp::create(rewriter, loc, 0, 32);
    for (Stream &stream : streams)
      countUses(stream);
    for (Stream &stream : streams) { // later ones have replaced the loops of earlier ones
      auto loop = dyn_cast<scf::ForOp>(stream.product.dot->getParentOp());
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
      multiply(stream);
    strip(*load);
    return simplify(roles);
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(rewriter, loc, value); }

  /// The first op that not every thread may run: all before it are scalars.
  Operation *firstOfRoles() {
    for (Operation &op : body)
      if (op.getNumRegions() != 0 || (!isMemoryEffectFree(&op) && !isa<AllocOp, RingOp>(op)) ||
          (llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>)))
        return &op;
    llvm_unreachable("a product gives a tile");
  }

  LogicalResult makeRings() {
    int64_t bytes = 0;
    for (Stream &stream : streams) {
      stream.lhs.slot = slotType(stream.product.lhs, stream.product.dot.getLhs());
      stream.rhs.slot = slotType(stream.product.rhs, stream.product.dot.getRhs());
      bytes += stream.lhs.slot.getSizeBytes() + stream.rhs.slot.getSizeBytes();
    }
    int64_t taken = kReservedBytes;
    kernel.walk([&](AllocOp alloc) { taken += cast<SharedType>(alloc.getResult().getType()).getSizeBytes(); });
    int64_t room = (targetOf(kernel).sharedPerCta - taken) / bytes, slots = std::min(kMostSlots, room);
    if (DictionaryAttr hints = kernel.getScheduleAttr())
      if (auto stages = hints.getAs<IntegerAttr>("stages"))
        slots = std::min<int64_t>(room, stages.getInt());
    if (slots < 2)
      return kernel.emitError() << "needs " << 2 * bytes << " bytes of shared memory for operands that are copied ahead";
    Type i64 = rewriter.getI64Type();
    for (Stream &stream : streams) {
      for (OperandBuffers *buffers : {&stream.lhs, &stream.rhs}) {
        SmallVector<int64_t> shape(buffers->slot.getShape());
        shape.insert(shape.begin(), slots);
        auto type = SharedType::get(shape, buffers->slot.getElementType(), layout::withSlots(*buffers->slot.getMemory(), slots));
        buffers->all = AllocOp::create(rewriter, loc, type, IntegerAttr());
      }
      Value barriers = AllocOp::create(rewriter, loc, SharedType::get({2, slots}, i64), IntegerAttr());
      stream.ring = RingOp::create(rewriter, loc, RingType::get(rewriter.getContext(), slots), barriers);
    }
    return success();
  }

  /// Makes the loops around a product carry how often its operands have been copied.
  void countUses(Stream &stream) {
    SmallVector<scf::ForOp> loops;
    for (Operation *parent = stream.product.dot->getParentOp(); parent != kernel; parent = parent->getParentOp())
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

  Value slotOf(const OperandBuffers &buffers, Value use) {
    int64_t slots = cast<SharedType>(buffers.all.getType()).getShape().front();
    Value count = arith::ConstantIntOp::create(rewriter, loc, slots, 32);
    Value index = arith::IndexCastUIOp::create(rewriter, loc, rewriter.getIndexType(), arith::RemUIOp::create(rewriter, loc, use, count));
    return SlotOp::create(rewriter, loc, buffers.slot, buffers.all, index);
  }

  /// Copies one operand, panel by panel.
  void copy(const StreamedOperand &operand, const OperandBuffers &buffers, Value ring, Value use, const IRMapping &mapping) {
    int64_t bytes = buffers.slot.getElementBytes(), width = kPanelBytes / bytes, extent = operand.place.box[operand.place.unit];
    SmallVector<int64_t> box = operand.place.box;
    box[operand.place.unit] = width;
    int64_t panelBytes = llvm::product_of(box) * bytes;
    unsigned map = addTensorMap(kernel, TensorMapAttr::get(rewriter.getContext(), operand.place.argument.getArgNumber(), box, kPanelBytes));
    Value slot = slotOf(buffers, use);
    SmallVector<Value> offsets;
    for (Value offset : operand.place.offsets)
      offsets.push_back(mapping.lookupOrDefault(offset));
    Value begin = offsets[operand.place.unit];
    for (int64_t panel = 0; panel < extent / width; ++panel) {
      offsets[operand.place.unit] =
          panel == 0 ? begin : arith::AddIOp::create(rewriter, loc, begin, constant(panel * width)).getResult();
      TensorLoadOp::create(rewriter, loc, operand.place.argument, offsets, map, slot, panel * panelBytes, ring, use);
    }
  }

  void copyOperands(Stream &stream, const IRMapping &mapping) {
    auto dot = cast<tile::DotOp>(mapping.lookup(stream.product.dot.getOperation()));
    rewriter.setInsertionPoint(dot);
    Value use = mapping.lookupOrDefault(stream.use);
    AcquireOp::create(rewriter, loc, stream.ring, use, stream.lhs.slot.getSizeBytes() + stream.rhs.slot.getSizeBytes());
    copy(stream.product.lhs, stream.lhs, stream.ring, use, mapping);
    copy(stream.product.rhs, stream.rhs, stream.ring, use, mapping);
    rewriter.replaceOp(dot, dot.getAccumulator());
  }

  void multiply(Stream &stream) {
    tile::DotOp dot = stream.product.dot;
    rewriter.setInsertionPoint(dot);
    AwaitOp::create(rewriter, loc, stream.ring, stream.use);
    Value left = slotOf(stream.lhs, stream.use), right = slotOf(stream.rhs, stream.use);
    Value product = WgmmaOp::create(rewriter, loc, left, right, dot.getAccumulator(), startAtFirst(dot));
    Value done = WgmmaWaitOp::create(rewriter, loc, 0, product).getResult(0);
    ReleaseOp::create(rewriter, loc, stream.ring, stream.use);
    rewriter.replaceOp(dot, done);
  }

  /// i1: whether the product adds to its accumulator. One that starts at zero in front of the loop gets no start.
  Value startAtFirst(tile::DotOp dot) {
    auto argument = dyn_cast<BlockArgument>(dot.getAccumulator());
    auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
    if (!loop || dot->getBlock() != loop.getBody() || !isZero(loop.getTiedLoopInit(argument)->get()) ||
        loop.getTiedLoopYieldedValue(argument)->get() != dot.getResult())
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
  std::vector<Stream> streams;
};

struct SplitRoles final : impl::KgpuSplitRolesBase<SplitRoles> {
  void runOnOperation() override {
    if (getLaunch(getOperation()).consumers != 0 && failed(Splitter(getOperation()).run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace kpkg::kgpu
