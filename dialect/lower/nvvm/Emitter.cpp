// Dispatches ops to the functions that emit them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

Emitter::Emitter(tile::KernelOp kernel, OpBuilder &builder)
    : kernel(kernel), builder(kernel.getLoc(), builder), launch(kgpu::getLaunch(kernel)) {}

LogicalResult Emitter::run() {
  if (failed(makeFunction()))
    return failure();
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (failed(emit(&op)))
      return failure();
    if (launch.overlaps && &op == lastLoop)
      letNextKernelStart(builder);
  }
  gpu::ReturnOp::create(builder);
  return success();
}

LogicalResult Emitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(emit(&op)))
      return failure();
  return success();
}

LogicalResult Emitter::emit(Operation *op) {
  builder.setLoc(op->getLoc());
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::ConstantOp constant) { return emitConstant(constant); })
      .Case([&](tile::BlockIdOp block) {
        define(block, {blockId(block.getAxis())});
        return success();
      })
      .Case([&](kgpu::CtaIdOp id) {
        define(id, {arith::IndexCastUIOp::create(builder, builder.getIndexType(), ctaId(builder, tile::GridAxis::x))});
        return success();
      })
      .Case([&](kgpu::CtaCountOp count) {
        define(count,
               {arith::IndexCastUIOp::create(builder, builder.getIndexType(), ctaCount(builder, tile::GridAxis::x))});
        return success();
      })
      .Case([&](kgpu::ClusterIdOp id) {
        Value cluster =
            arith::DivUIOp::create(builder, ctaId(builder, tile::GridAxis::x), constantOf(builder, launch.cluster));
        define(id, {arith::IndexCastUIOp::create(builder, builder.getIndexType(), cluster)});
        return success();
      })
      .Case([&](kgpu::ClusterRankOp rank) {
        define(rank, {arith::IndexCastUIOp::create(builder, builder.getIndexType(), ctaOfCluster(builder))});
        return success();
      })
      .Case([&](tile::GridDimOp size) {
        define(size, {grid[unsigned(size.getAxis())]});
        return success();
      })
      .Case([&](tile::DimOp dim) {
        define(dim, {view(dim.getView()).shape[dim.getDimension()]});
        return success();
      })
      .Case([&](tile::StrideOp stride) {
        define(stride, {view(stride.getView()).stride[stride.getDimension()]});
        return success();
      })
      .Case([&](tile::DropOp drop) { return emitDrop(drop); })
      .Case([&](tile::SliceOp slice) { return emitSlice(slice); })
      .Case([&](tile::LoadOp load) { return emitLoad(load); })
      .Case([&](tile::StoreOp store) { return emitStore(store); })
      .Case([&](tile::GatherOp gather) { return emitGather(gather); })
      .Case([&](tile::ScatterOp scatter) { return emitScatter(scatter); })
      .Case([&](tile::AtomicOp atomic) { return emitAtomic(atomic); })
      .Case([&](tile::SplatOp splat) {
        define(splat, TileRegisters(kgpu::layoutOf(splat.getResult()).registers(), scalar(splat.getValue())));
        return success();
      })
      .Case([&](tile::IotaOp iota) {
        emitIota(iota);
        return success();
      })
      .Case([&](tile::BroadcastOp broadcast) { return emitBroadcast(broadcast); })
      .Case([&](tile::ReshapeOp reshape) { return emitReshape(reshape); })
      .Case([&](tile::PermuteOp permute) { return emitPermute(permute); })
      .Case([&](tile::ReduceOp reduce) {
        return emitReduce(reduce, reduce.getKind(), reduce.getValue(), reduce.getAxis());
      })
      .Case([&](kgpu::PartialReduceOp reduce) {
        return emitReduce(reduce, reduce.getKind(), reduce.getValue(), reduce.getAxis());
      })
      .Case([&](kgpu::HoldOp hold) {
        emitHold(hold);
        return success();
      })
      .Case([&](kgpu::WarpAnyOp any) {
        Value isTrue;
        for (Value held : registersOf(any.getValue()))
          isTrue = isTrue ? arith::OrIOp::create(builder, isTrue, held).getResult() : held;
        define(any, {anyLane(builder, isTrue)});
        return success();
      })
      .Case([&](kgpu::ColumnsOp columns) { return emitColumns(columns); })
      .Case([&](kgpu::JoinColumnsOp join) { return emitJoinColumns(join); })
      .Case([&](kgpu::OwnPartOp own) { return emitOwnPart(own); })
      .Case([&](tile::CombineOp combine) {
        return emitCombine(combine, combine.getInputs(), combine.getInits(), combine.getAxis());
      })
      .Case([&](kgpu::PartialCombineOp combine) {
        return emitCombine(combine, combine.getInputs(), combine.getInits(), combine.getAxis());
      })
      .Case([&](tile::ScanOp scan) { return emitScan(scan); })
      .Case([&](kgpu::PartialScanOp scan) { return emitPartialScan(scan); })
      .Case([&](kgpu::PutBeforeOp put) { return emitPutBefore(put); })
      .Case([&](tile::AssertOp check) { return emitAssert(check); })
      .Case([&](tile::PrintOp print) { return emitPrint(print); })
      .Case([&](kgpu::CvtLayoutOp convert) { return emitConversion(convert); })
      .Case([&](kgpu::AllocOp alloc) { return emitAlloc(alloc); })
      .Case([&](kgpu::SlotOp slot) { return emitSlot(slot); })
      .Case<kgpu::ReshapeBufferOp, kgpu::TransposeBufferOp>([&](auto same) {
        define(same, {scalar(same.getBuffer())});
        return success();
      })
      .Case([&](kgpu::LocalStoreOp store) { return emitLocalStore(store); })
      .Case([&](kgpu::RemoteStoreOp store) { return emitRemoteStore(store); })
      .Case([&](kgpu::LocalLoadOp load) { return emitLocalLoad(load); })
      .Case([&](kgpu::AsyncCopyOp copy) { return emitAsyncCopy(copy); })
      .Case([&](kgpu::AsyncGatherOp gather) { return emitAsyncGather(gather); })
      .Case([&](kgpu::FetchOp fetch) { return emitFetch(fetch); })
      .Case([&](kgpu::TouchOp touch) { return emitTouch(touch); })
      .Case([&](kgpu::FetchedOp fetched) { return emitFetched(fetched); })
      .Case([&](kgpu::AsyncCommitOp) {
        commitAsyncCopies(builder);
        return success();
      })
      .Case([&](kgpu::AsyncWaitOp wait) {
        waitForAsyncCopies(builder, wait.getPending());
        return success();
      })
      .Case([&](kgpu::MmaOp mma) { return emitMma(mma); })
      .Case([&](kgpu::BarrierOp) {
        emitBarrier();
        return success();
      })
      .Case([&](kgpu::WarpBarrierOp) {
        warpBarrier(builder);
        return success();
      })
      .Case([&](kgpu::ClusterBarrierOp barrier) {
        clusterBarrier(builder, barrier.getRelaxed());
        return success();
      })
      .Case([&](kgpu::ExchangeInitOp init) { return emitExchangeInit(init); })
      .Case([&](kgpu::ExchangeOp exchange) { return emitExchange(exchange); })
      .Case([&](kgpu::RingOp ring) { return emitRing(ring); })
      .Case([&](kgpu::RolesOp roles) { return emitRoles(roles); })
      .Case([&](kgpu::AcquireOp acquire) { return emitAcquire(acquire); })
      .Case([&](kgpu::AwaitOp await) { return emitAwait(await); })
      .Case([&](kgpu::PublishAllOp publish) { return emitPublishAll(publish); })
      .Case([&](kgpu::PublishOp publish) { return emitPublish(publish); })
      .Case([&](kgpu::ReleaseOp release) { return emitRelease(release); })
      .Case([&](kgpu::NextTileOp take) { return emitNextTile(take); })
      .Case([&](kgpu::PublishIndexOp send) { return emitPublishIndex(send); })
      .Case([&](kgpu::ConsumeIndexOp receive) { return emitConsumeIndex(receive); })
      .Case([&](kgpu::PingPongWaitOp turn) { return emitPingPongWait(turn); })
      .Case([&](kgpu::PingPongSignalOp turn) { return emitPingPongSignal(turn); })
      .Case([&](kgpu::TensorLoadOp load) { return emitTensorLoad(load); })
      .Case([&](kgpu::ClearOutsideOp clear) { return emitClearOutside(clear); })
      .Case([&](kgpu::TensorStoreOp store) { return emitTensorStore(store); })
      .Case([&](kgpu::WgmmaOp product) { return emitWgmma(product); })
      .Case([&](kgpu::SchedulingFenceOp fence) { return emitSchedulingFence(fence); })
      .Case([&](kgpu::WgmmaWaitOp wait) { return emitWgmmaWait(wait); })
      .Case([&](ub::PoisonOp poison) {
        Type type = poison.getType();
        Value value = LLVM::PoisonOp::create(builder, getElementTypeOrSelf(type));
        define(poison, TileRegisters(isa<RankedTensorType>(type) ? kgpu::layoutOf(type).registers() : 1, value));
        return success();
      })
      .Case([&](scf::ForOp loop) { return emitFor(loop); })
      .Case([&](scf::IfOp branch) { return emitIf(branch); })
      .Case([&](scf::WhileOp loop) { return emitWhile(loop); })
      .Default([&](Operation *other) {
        if (other->hasTrait<OpTrait::Elementwise>() || isa<arith::IndexCastOp>(other))
          return emitElementwise(other);
        return LogicalResult(other->emitOpError("is not supported on GPUs yet"));
      });
}

} // namespace kpkg::lower::nvvm
