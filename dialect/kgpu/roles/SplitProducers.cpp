// Moves the computation of left operands from the consumers into a producer warpgroup, which publishes them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: kgpu.roles producer_warp { ... } consumers {
//           scf.for ... iter_args(%top, %sum) {
//             kgpu.await %ring[%use]; %s = kgpu.wgmma %q, %slot ...; ...; %p, %keep, %now = f(%s, %top)
//             %o = kgpu.wgmma %p, %slot^T, %sum * %keep; ...; kgpu.release %ring[%use] } }
// After:  kgpu.roles producer_warp { ... } consumers {
//           scf.for ... iter_args(%sum, %i) {
//             kgpu.await %ring[%use]; kgpu.await %keeps[%i]; %keep = kgpu.local_load ...; kgpu.release %keeps[%i]
//             kgpu.await %parts[%i]; %o = kgpu.wgmma %part, %slot^T, %sum * %keep; ...; kgpu.release %parts[%i]
//             kgpu.release %ring[%use] } }
//         producers {
//           scf.for ... iter_args(%top, %i) {
//             kgpu.await %ring[%use]; %s = kgpu.wgmma %q, %slot ...; ...; %p, %keep, %now = f(%s, %top)
//             kgpu.publish %keep to ... signals %keeps[%i]; kgpu.publish %p to ... signals %parts[%i]
//             kgpu.release %ring[%use] } }
//
// On entry: a kernel whose launch has `producers`, split into roles, whose waits follow their products. Tiles that do
// not depend on accumulators of the second products have layouts of which every warpgroup holds a copy. On exit:
// `consumers` has the products whose left operand was computed, and the code that depends on their results. `producers`
// has the code that leads to those operands, and its stores. Other tiles that the consumers need are published through
// rings of their own, before they are broadcast and as early as they can be computed. Both roles repeat loops, scalars
// and waits for copies.
//
// So products of an iteration overlap with the computation of the next one's operand. Both roles keep the order of the
// original program, so neither waits for a later step of the other.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/Dependents.h"
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUSPLITPRODUCERS
#include "dialect/kgpu/Passes.h.inc"

namespace {
constexpr int64_t kSmallSlots = 2;       ///< for published tiles that are no operands
constexpr int64_t kReservedBytes = 1024; ///< of shared memory, for barriers

Value rootOf(Value buffer) {
  while (Value whole = aliasedBuffer(buffer.getDefiningOp()))
    buffer = whole;
  return buffer;
}

bool isEffect(Operation &op) {
  return isa<tile::StoreOp, tile::AddStoreOp, tile::ScatterOp, tile::AtomicOp, TensorStoreOp, PublishOp>(op);
}
bool isRingUse(Operation &op) { return isa<AwaitOp, ReleaseOp, ClearOutsideOp, SchedulingFenceOp>(op); }

/// Finds the code that a role needs for those of its effects that it keeps.
class Needed {
public:
  Needed(Region &role, llvm::function_ref<bool(Operation &)> isKept) {
    role.walk([&](Operation *op) {
      if (isEffect(*op) && isKept(*op))
        keep(op);
    });
  }

  bool has(Value value) const { return values.contains(value); }
  bool has(Operation *op) const {
    return kept.contains(op) || llvm::any_of(op->getResults(), [&](Value result) { return has(result); });
  }

  /// Keeps an op with an effect, the values it reads, and the ops that decide whether it runs.
  void keep(Operation *op) {
    kept.insert(op);
    for (Value operand : op->getOperands())
      need(operand);
    for (Operation *around = op->getParentOp(); !isa<RolesOp>(around); around = around->getParentOp()) {
      kept.insert(around);
      if (auto loop = dyn_cast<scf::ForOp>(around)) {
        for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
          need(bound);
      } else if (auto choice = dyn_cast<scf::IfOp>(around)) {
        need(choice.getCondition());
      }
    }
  }

private:
  void need(Value value) {
    if (!values.insert(value).second)
      return;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
          loop && argument != loop.getInductionVar())
        needCarried(loop, loop.getTiedLoopResult(argument));
      return;
    }
    Operation *op = value.getDefiningOp();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return needCarried(loop, cast<OpResult>(value));
    for (Value operand : op->getOperands())
      need(operand);
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        need(operand);
    });
  }

  void needCarried(scf::ForOp loop, OpResult result) {
    BlockArgument argument = loop.getTiedLoopRegionIterArg(result);
    for (Value value : {Value(result), Value(argument)})
      values.insert(value);
    for (Value value : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep(),
                        loop.getTiedLoopInit(argument)->get(), loop.getTiedLoopYieldedValue(argument)->get()})
      need(value);
  }

  DenseSet<Value> values;
  DenseSet<Operation *> kept;
};

/// A tile that the producer warpgroup publishes for the consumers.
struct Published {
  CvtLayoutOp mark, made;          ///< stand for the tile in `consumers` and in `producers`
  SmallVector<WgmmaOp, 1> readers; ///< products that read the tile as their left operand; empty if it is loaded
  SharedType slot;
  Value buffer, ring;
};

class Splitter {
public:
  Splitter(tile::KernelOp kernel, RolesOp roles)
      : kernel(kernel), roles(roles), rewriter(kernel.getContext()), loc(roles.getLoc()) {}

  LogicalResult run() {
    roles.getConsumers().walk([&](WgmmaOp product) {
      (isa<RankedTensorType>(product.getLhs().getType()) ? readers : sources).push_back(product);
    });
    if (readers.empty() || sources.empty())
      return roles.emitOpError(
          "has no product of what another one gives, whose operand a warpgroup of its own could make");
    auto results = [](ArrayRef<WgmmaOp> products) {
      return llvm::map_to_vector(products, [](WgmmaOp product) { return Value(product.getResult()); });
    };
    madeFrom = dependents(roles, results(sources));
    summed = dependents(roles, results(readers));
    if (failed(findPublished()))
      return failure();
    makeRings();
    auto isStoredSum = [&](Operation &op) {
      return llvm::any_of(op.getOperands(), [&](Value operand) { return summed.contains(operand); });
    };
    DenseSet<Operation *> sums; // stores of the consumers
    roles.getConsumers().walk([&](Operation *op) {
      if (isEffect(*op) && isStoredSum(*op))
        sums.insert(op);
    });
    IRMapping mapping;
    Block *make = rewriter.createBlock(&roles.getProducers());
    for (Operation &op : roles.getConsumers().front())
      rewriter.clone(op, mapping);
    DenseSet<Operation *> sumsOfMake;
    for (Operation *op : sums)
      sumsOfMake.insert(mapping.lookup(op));
    for (Published &one : published)
      one.made = cast<CvtLayoutOp>(mapping.lookup(one.mark.getOperation()));
    for (Published &one : published)
      if (failed(hand(one, *make)) || failed(take(one)))
        return failure();
    if (failed(strip(roles.getProducers(), [&](Operation &op) { return !sumsOfMake.contains(&op); })) ||
        failed(strip(roles.getConsumers(), [&](Operation &op) { return sums.contains(&op); })))
      return failure();
    return simplify();
  }

private:
  bool isMade(Value value) const {
    return isa<RankedTensorType>(value.getType()) && madeFrom.contains(value) && !summed.contains(value);
  }

  /// Finds tiles that the producer warpgroup computes and the consumers read, and marks each by a conversion.
  LogicalResult findPublished() {
    for (WgmmaOp product : readers)
      if (!isMade(product.getLhs()))
        return product.emitOpError("reads what its own results are part of, or what no other product leads to: no "
                                   "other warpgroup can make that");
    llvm::MapVector<Value, SmallVector<WgmmaOp, 1>> found;
    for (WgmmaOp product : readers)
      found[source(product.getLhs())].push_back(product);
    roles.getConsumers().walk([&](Operation *op) {
      bool isOfSums =
          llvm::any_of(llvm::concat<Value>(SmallVector<Value>(op->getOperands()), SmallVector<Value>(op->getResults())),
                       [&](Value value) { return summed.contains(value); });
      if (op->getNumRegions() != 0 || op->hasTrait<OpTrait::IsTerminator>() || !isOfSums)
        return;
      for (Value operand : op->getOperands())
        if (isMade(operand) && !(isa<WgmmaOp>(op) && operand == cast<WgmmaOp>(op).getLhs()))
          found.insert({source(operand), {}});
    });
    for (auto &[value, products] : found) {
      if (Operation *op = value.getDefiningOp())
        rewriter.setInsertionPointAfter(op);
      else
        rewriter.setInsertionPointToStart(value.getParentBlock());
      auto mark = CvtLayoutOp::create(rewriter, loc, value.getType(), value);
      value.replaceAllUsesExcept(mark, mark);
      if (products.empty())
        hoist(mark);
      published.push_back({mark, {}, products, {}, {}, {}});
    }
    return success();
  }

  /// Follows broadcasts, reshapes and conversions back to the tile that they copy.
  Value source(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !isa<tile::BroadcastOp, tile::ReshapeOp, CvtLayoutOp>(op) || !isMade(op->getOperand(0)))
      return value;
    return source(op->getOperand(0));
  }

  /// Moves the tile's computation up, to right after its last operand.
  static void hoist(CvtLayoutOp mark) {
    BackwardSliceOptions options;
    options.omitBlockArguments = true;
    options.inclusive = true;
    options.filter = [&](Operation *op) {
      return op->getBlock() == mark->getBlock() && op->getNumRegions() == 0 && isMemoryEffectFree(op);
    };
    SetVector<Operation *> slice;
    (void)getBackwardSlice(mark.getOperation(), &slice, options);
    for (Operation *op : slice) {
      Operation *last = nullptr;
      for (Value operand : op->getOperands())
        if (Operation *source = operand.getDefiningOp();
            source && source->getBlock() == op->getBlock() && (!last || last->isBeforeInBlock(source)))
          last = source;
      if (last && last->getNextNode() != op)
        op->moveAfter(last);
    }
  }

  void makeRings() {
    rewriter.setInsertionPoint(roles);
    zero = arith::ConstantIntOp::create(rewriter, loc, 0, 32);
    int64_t taken = kReservedBytes, operands = 0;
    kernel.walk([&](AllocOp alloc) { taken += cast<SharedType>(alloc.getResult().getType()).getSizeBytes(); });
    for (Published &one : published) {
      auto type = cast<RankedTensorType>(one.mark.getType());
      unsigned bytes = elementBytes(type.getElementType());
      one.slot = one.readers.empty()
                     ? SharedType::get(type.getShape(), type.getElementType())
                     : SharedType::get(type.getShape(), type.getElementType(), *panelsOf(type.getShape(), 1, bytes));
      (one.readers.empty() ? taken : operands) += one.slot.getSizeBytes() * (one.readers.empty() ? kSmallSlots : 1);
    }
    int64_t operandSlots = taken + 2 * operands <= int64_t(targetOf(kernel).sharedPerCta) ? 2 : 1;
    for (Published &one : published) {
      int64_t slots = one.readers.empty() ? kSmallSlots : operandSlots;
      SmallVector<int64_t> shape(one.slot.getShape());
      shape.insert(shape.begin(), slots);
      SharedType all = one.slot.getMemory() ? SharedType::get(shape, one.slot.getElementType(),
                                                              layout::withSlots(*one.slot.getMemory(), slots))
                                            : SharedType::get(shape, one.slot.getElementType());
      one.buffer = AllocOp::create(rewriter, loc, all, IntegerAttr());
      Value barriers =
          AllocOp::create(rewriter, loc, SharedType::get({2, slots}, rewriter.getI64Type()), IntegerAttr());
      one.ring = RingOp::create(rewriter, loc, RingType::get(rewriter.getContext(), slots), barriers, /*shared=*/false,
                                /*cluster=*/false, /*channel=*/false, /*published=*/true);
    }
  }

  /// Calls `use` with the number of the ring use that `op` is, counted from `count`. Surrounding loops carry the
  /// number. Returns the count after the op.
  FailureOr<Value> number(Operation *op, Block &block, Value count, llvm::function_ref<void(Value)> use) {
    if (op->getBlock() == &block) {
      rewriter.setInsertionPoint(op);
      Value next = arith::AddIOp::create(rewriter, loc, count, arith::ConstantIntOp::create(rewriter, loc, 1, 32));
      use(count);
      return next;
    }
    auto loop = dyn_cast<scf::ForOp>(block.findAncestorOpInBlock(*op));
    if (!loop)
      return LogicalResult(op->emitOpError("is needed by warpgroups that do not make it, but not in every iteration"));
    loop = carryAlso(loop, count);
    FailureOr<Value> after = number(op, *loop.getBody(), loop.getRegionIterArgs().back(), use);
    if (failed(after))
      return failure();
    yieldLast(loop, *after);
    return Value(loop.getResults().back());
  }

  LogicalResult hand(Published &one, Block &make) {
    return number(one.made, make, zero, [&](Value use) {
      PublishOp::create(rewriter, loc, one.made.getValue(), useSlot(rewriter, loc, one.slot, one.buffer, use), one.ring,
                        use);
      rewriter.replaceOp(one.made, one.made.getValue());
    });
  }

  LogicalResult take(Published &one) {
    Block &compute = roles.getConsumers().front();
    if (one.readers.empty())
      return number(one.mark, compute, zero, [&](Value use) {
        AwaitOp::create(rewriter, loc, one.ring, use);
        Value tile =
            LocalLoadOp::create(rewriter, loc, one.mark.getType(), useSlot(rewriter, loc, one.slot, one.buffer, use));
        ReleaseOp::create(rewriter, loc, one.ring, use);
        rewriter.replaceOp(one.mark, tile);
      });
    WgmmaOp first = one.readers.front(), last = one.readers.back();
    if (llvm::any_of(one.readers, [&](WgmmaOp product) { return product->getBlock() != one.mark->getBlock(); }))
      return first.emitOpError("reads what is made in another block");
    return number(first, compute, zero, [&](Value use) {
      AwaitOp::create(rewriter, loc, one.ring, use);
      Value slot = useSlot(rewriter, loc, one.slot, one.buffer, use);
      for (WgmmaOp product : one.readers)
        product.getLhsMutable().assign(slot);
      rewriter.setInsertionPointAfter(*last->user_begin()); // its wait
      ReleaseOp::create(rewriter, loc, one.ring, use);
      rewriter.replaceOp(one.mark, one.mark.getValue());
    });
  }

  /// Erases the ops of a role that do not lead to the effects that it keeps.
  LogicalResult strip(Region &role, llvm::function_ref<bool(Operation &)> isKept) {
    Needed needed(role, isKept);
    DenseSet<Value> rings;
    role.walk([&](Operation *op) {
      if (isa<WgmmaOp, LocalLoadOp>(op) && needed.has(op))
        for (Value operand : op->getOperands())
          if (isa<SharedType>(operand.getType()))
            rings.insert(ringOf(rootOf(operand)));
    });
    role.walk([&](Operation *op) {
      auto clear = dyn_cast<ClearOutsideOp>(op);
      Value ring = clear ? ringOf(rootOf(clear.getBuffer())) : isRingUse(*op) ? op->getOperand(0) : Value();
      if (ring && rings.contains(ring) && !(clear && cleared.contains(ring)))
        needed.keep(op);
    });
    cleared = rings;
    auto isOfOther = [&](WgmmaOp product) { // each role's own computation is in place by now
      return &role == &roles.getProducers() ? isa<RankedTensorType>(product.getLhs().getType())
                                            : !llvm::is_contained(readers, product);
    };
    WalkResult found = role.walk([&](WgmmaOp product) {
      return needed.has(product.getOperation()) && isOfOther(product)
                 ? WalkResult(product.emitOpError("is needed by warpgroups that do not compute it"))
                 : WalkResult::advance();
    });
    if (found.wasInterrupted())
      return failure();
    role.walk([&](scf::ForOp loop) {
      for (auto [argument, yielded] : llvm::zip(loop.getRegionIterArgs(), *loop.getYieldedValuesMutable()))
        if (!needed.has(argument))
          yielded.set(argument);
    });
    SmallVector<Operation *> ops;
    role.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : llvm::reverse(ops)) // users of an op are erased before it
      if (!op->hasTrait<OpTrait::IsTerminator>() && !needed.has(op) && op->use_empty())
        rewriter.eraseOp(op);
    return success();
  }

  /// Returns the ring whose copies or publications fill a buffer.
  Value ringOf(Value buffer) {
    for (Published &one : published)
      if (one.buffer == buffer)
        return one.ring;
    Value ring;
    roles.getProducerWarp().walk([&](TensorLoadOp load) {
      if (rootOf(load.getBuffer()) == buffer)
        ring = load.getRing();
    });
    return ring;
  }

  LogicalResult simplify() {
    RewritePatternSet patterns(kernel.getContext());
    scf::ForOp::getCanonicalizationPatterns(patterns, kernel.getContext());
    FrozenRewritePatternSet frozen(std::move(patterns));
    return failure(failed(applyPatternsGreedily(roles.getConsumers(), frozen)) ||
                   failed(applyPatternsGreedily(roles.getProducers(), frozen)));
  }

  tile::KernelOp kernel;
  RolesOp roles;
  IRRewriter rewriter;
  Location loc;
  Value zero;
  SmallVector<WgmmaOp> readers, sources; ///< products of a computed operand, and the products that it depends on
  DenseSet<Value> cleared; ///< rings whose slots the producer warpgroup reads, and clears in part, before it publishes
  DenseSet<Value> madeFrom, summed; ///< values that depend on results of `sources`, and of `readers`
  SmallVector<Published, 4> published;
};

struct SplitProducers final : impl::KgpuSplitProducersBase<SplitProducers> {
  void runOnOperation() override {
    if (getLaunch(getOperation()).producers == 0)
      return;
    SmallVector<RolesOp> all;
    getOperation().walk([&](RolesOp roles) { all.push_back(roles); });
    for (RolesOp roles : all)
      if (failed(Splitter(getOperation(), roles).run()))
        return signalPassFailure();
  }
};
} // namespace
} // namespace kpkg::kgpu
