// Delays the product of an exchanged tile by one iteration, so that it waits for no tile of the same iteration.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %m = %lo to %hi iter_args(%use) {
//           ...; kgpu.publish_all %p to %slot signals %ring[%use]; ...
//           kgpu.await %ring[%use]; %d = kgpu.wgmma %slot^T, %k ...; %e = kgpu.wgmma_wait 0 %d
//           kgpu.tensor_store adds %e, %y[%m] }
// After:  scf.for %m = %lo to %hi iter_args(%use) {
//           ...; kgpu.publish_all %p to %slot signals %ring[%use]; ...
//           kgpu.await %ring[%use - 1]; %d = kgpu.wgmma %before^T, %k ... droppable; %e = kgpu.wgmma_wait 0 %d
//           scf.if (%m > %lo) { kgpu.tensor_store adds %e, %y[%m - 1] } }
//         kgpu.await %ring[%use - 1]; %d = kgpu.wgmma ... droppable; ...
//         scf.if (%lo < %hi) { kgpu.tensor_store adds %e, %y[%hi - 1] }
//
// The delayed product of the first iteration reads a tile of an earlier loop, and its result is dropped. That costs
// less than a loop with a different first iteration.
#include "dialect/kgpu/roles/PlanChannels.h"
#include "dialect/kgpu/roles/Releases.h"
#include "dialect/kgpu/roles/RoleCode.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
class Delay {
public:
  Delay(IRRewriter &rewriter, const ExchangedRead &read)
      : rewriter(rewriter), read(read), publication(read.publication), product(read.product), loc(product.getLoc()),
        loop(cast<scf::ForOp>(publication->getParentOp())), wait(cast<WgmmaWaitOp>(*product->user_begin())),
        store(cast<TensorStoreOp>(*wait->user_begin())) {}

  void run() {
    Value number = loop.getInductionVar(), first = loop.getLowerBound(), end = loop.getUpperBound();
    AwaitOp await = read.await;
    rewriter.setInsertionPoint(await);
    Value before = useBefore(publication.getUse());
    await.getUseMutable().assign(before);
    product.getLhsMutable().assign(operand(before));
    product.setDroppable(true);
    WgmmaWaitOp together = waitTogether();
    Operation *place = together;
    while (isa<ReleaseOp>(place->getNextNode()))
      place = place->getNextNode();
    rewriter.setInsertionPointAfter(place);
    Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    storeIf(arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::sgt, number, first),
            together.getResults().back(), arith::SubIOp::create(rewriter, loc, number, one));
    // The last iteration's product follows the loop.
    rewriter.setInsertionPointAfter(loop);
    Value last = useBefore(loop.getTiedLoopResult(cast<BlockArgument>(publication.getUse())));
    AwaitOp::create(rewriter, loc, publication.getRing(), last);
    Value poison = ub::PoisonOp::create(rewriter, loc, product.getType());
    Value sum = WgmmaOp::create(rewriter, loc, operand(last), product.getRhs(), poison,
                                arith::ConstantIntOp::create(rewriter, loc, 0, 1),
                                /*positions=*/Value(), /*droppable=*/true);
    Value done = WgmmaWaitOp::create(rewriter, loc, 0, sum).getResult(0);
    one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    storeIf(arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, first, end), done,
            arith::SubIOp::create(rewriter, loc, end, one));
    rewriter.eraseOp(store);
  }

private:
  /// Merges the product's wait with those of earlier products whose results only the next iteration reads.
  WgmmaWaitOp waitTogether() {
    Operation *yield = loop.getBody()->getTerminator();
    SmallVector<WgmmaWaitOp> waits;
    SmallVector<ReleaseOp> releases;
    for (auto one : loop.getBody()->getOps<WgmmaWaitOp>())
      if (one == wait ||
          (one->isBeforeInBlock(wait) && llvm::all_of(one->getUsers(), [&](Operation *user) { return user == yield; })))
        waits.push_back(one);
    SmallVector<Value> values;
    for (WgmmaWaitOp one : waits) {
      llvm::append_range(values, one.getValues());
      if (one != wait)
        llvm::append_range(releases, releasesAfter(one));
    }
    rewriter.setInsertionPointAfter(wait);
    auto together = WgmmaWaitOp::create(rewriter, loc, 0, values);
    moveAfter(together, releases);
    unsigned done = 0;
    for (WgmmaWaitOp one : waits) {
      unsigned count = one->getNumResults();
      rewriter.replaceOp(one, together.getResults().slice(done, count));
      done += count;
    }
    return together;
  }

  Value useBefore(Value use) {
    return arith::AddIOp::create(rewriter, loc, use, arith::ConstantIntOp::create(rewriter, loc, -1, 32));
  }
  Value operand(Value use) { return TransposeBufferOp::create(rewriter, loc, read.ring->slotOf(rewriter, loc, use)); }

  /// Repeats the store of iteration `number` with `value`, under `condition`.
  void storeIf(Value condition, Value value, Value number) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(
        scf::IfOp::create(rewriter, loc, condition, /*withElseRegion=*/false).thenBlock());
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), number);
    for (Operation *op : offsetsOf(store, loop))
      rewriter.clone(*op, mapping);
    auto copy = cast<TensorStoreOp>(rewriter.clone(*store, mapping));
    copy.getValueMutable().assign(value);
  }

  IRRewriter &rewriter;
  const ExchangedRead &read;
  PublishAllOp publication;
  WgmmaOp product;
  Location loc;
  scf::ForOp loop;
  WgmmaWaitOp wait;
  TensorStoreOp store;
};
} // namespace

void delayProduct(IRRewriter &rewriter, const ExchangedRead &read) { Delay(rewriter, read).run(); }

} // namespace kpkg::kgpu
