// Dispatches ops to the functions that emit them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

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
  if (isa<tile::TileDialect>(op->getDialect()))
    return emitTileOp(op);
  if (isa<kgpu::KgpuDialect>(op->getDialect()))
    return emitKgpuOp(op);
  return emitStandardOp(op);
}

LogicalResult Emitter::emitTileOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tile::BlockIdOp block) { return emitAs(block, {blockId(block.getAxis())}); })
      .Case([&](tile::GridDimOp size) { return emitAs(size, {gridDim(size.getAxis())}); })
      .Case([&](tile::DimOp dim) { return emitAs(dim, {view(dim.getView()).shape[dim.getDimension()]}); })
      .Case(
          [&](tile::StrideOp stride) { return emitAs(stride, {view(stride.getView()).stride[stride.getDimension()]}); })
      .Case([&](tile::DropOp drop) { return emitDrop(drop); })
      .Case([&](tile::SliceOp slice) { return emitSlice(slice); })
      .Case([&](tile::LoadOp load) { return emitLoad(load); })
      .Case([&](tile::StoreOp store) { return emitStore(store); })
      .Case([&](tile::GatherOp gather) { return emitGather(gather); })
      .Case([&](tile::ScatterOp scatter) { return emitScatter(scatter); })
      .Case([&](tile::AtomicOp atomic) { return emitAtomic(atomic); })
      .Case([&](tile::SplatOp splat) {
        return emitAs(splat, TileRegisters(kgpu::layoutOf(splat.getResult()).registers(), scalar(splat.getValue())));
      })
      .Case([&](tile::ScalarOp read) { return emitAs(read, {scalar(read.getValue())}); })
      .Case([&](tile::IotaOp iota) { return emitIota(iota); })
      .Case([&](tile::BroadcastOp broadcast) { return emitBroadcast(broadcast); })
      .Case([&](tile::ReshapeOp reshape) { return emitReshape(reshape); })
      .Case([&](tile::PermuteOp permute) { return emitPermute(permute); })
      .Case([&](tile::ExtractOp extract) { return emitExtract(extract); })
      .Case([&](tile::JoinOp join) { return emitJoin(join); })
      .Case([&](tile::UnpackOp unpack) { return emitUnpack(unpack); })
      .Case([&](tile::ReduceOp reduce) {
        return emitReduce(reduce, reduce.getKind(), reduce.getValue(), reduce.getAxis());
      })
      .Case([&](tile::CombineOp combine) {
        return emitCombine(combine, combine.getInputs(), combine.getInits(), combine.getAxis());
      })
      .Case([&](tile::ScanOp scan) { return emitScan(scan); })
      .Case([&](tile::AssertOp check) { return emitAssert(check); })
      .Case([&](tile::PrintOp print) { return emitPrint(print); })
      .Default([&](Operation *other) { return tile::isThreadOp(other) ? emitThreadOp(other) : emitStandardOp(other); });
}

LogicalResult Emitter::emitKgpuOp(Operation *op) {
  auto emitNow = [](auto instruct) { // An instruction without results.
    instruct();
    return success();
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](kgpu::CtaIdOp id) { return emitAs(id, {asIndex(ctaId(builder, tile::GridAxis::x))}); })
      .Case([&](kgpu::CtaCountOp count) { return emitAs(count, {asIndex(ctaCount(builder, tile::GridAxis::x))}); })
      .Case([&](kgpu::ClusterIdOp id) { return emitClusterId(id); })
      .Case([&](kgpu::ClusterRankOp rank) { return emitAs(rank, {asIndex(ctaOfCluster(builder))}); })
      .Case([&](kgpu::PartialReduceOp reduce) {
        return emitReduce(reduce, reduce.getKind(), reduce.getValue(), reduce.getAxis());
      })
      .Case([&](kgpu::HoldOp hold) { return emitHold(hold); })
      .Case([&](kgpu::WarpAnyOp any) { return emitWarpAny(any); })
      .Case([&](kgpu::ColumnsOp columns) { return emitColumns(columns); })
      .Case([&](kgpu::JoinColumnsOp join) { return emitJoinColumns(join); })
      .Case([&](kgpu::OwnPartOp own) { return emitOwnPart(own); })
      .Case([&](kgpu::PartialCombineOp combine) {
        return emitCombine(combine, combine.getInputs(), combine.getInits(), combine.getAxis());
      })
      .Case([&](kgpu::PartialScanOp scan) { return emitPartialScan(scan); })
      .Case([&](kgpu::PutBeforeOp put) { return emitPutBefore(put); })
      .Case([&](kgpu::CvtLayoutOp convert) { return emitConversion(convert); })
      .Case([&](kgpu::AllocOp alloc) { return emitAlloc(alloc); })
      .Case([&](kgpu::SlotOp slot) { return emitSlot(slot); })
      .Case<kgpu::ReshapeBufferOp, kgpu::TransposeBufferOp>(
          [&](auto same) { return emitAs(same, {scalar(same.getBuffer())}); })
      .Case([&](kgpu::SliceBufferOp slice) { return emitSliceBuffer(slice); })
      .Case([&](kgpu::ViewBufferOp view) { return emitViewBuffer(view); })
      .Case([&](kgpu::LocalStoreOp store) { return emitLocalStore(store); })
      .Case([&](kgpu::RemoteStoreOp store) { return emitRemoteStore(store); })
      .Case([&](kgpu::LocalLoadOp load) { return emitLocalLoad(load); })
      .Case([&](kgpu::AsyncCopyOp copy) { return emitAsyncCopy(copy); })
      .Case([&](kgpu::AsyncGatherOp gather) { return emitAsyncGather(gather); })
      .Case([&](kgpu::FetchOp fetch) { return emitFetch(fetch); })
      .Case([&](kgpu::TouchOp touch) { return emitTouch(touch); })
      .Case([&](kgpu::FetchedOp fetched) { return emitFetched(fetched); })
      .Case([&](kgpu::AsyncCommitOp) { return emitNow([&] { commitAsyncCopies(builder); }); })
      .Case([&](kgpu::AsyncWaitOp wait) { return emitNow([&] { waitForAsyncCopies(builder, wait.getPending()); }); })
      .Case([&](kgpu::MmaOp mma) { return emitMma(mma); })
      .Case([&](kgpu::BarrierOp) { return emitNow([&] { emitBarrier(); }); })
      .Case([&](kgpu::WarpBarrierOp) { return emitNow([&] { warpBarrier(builder); }); })
      .Case([&](kgpu::ClusterBarrierOp barrier) {
        return emitNow([&] { clusterBarrier(builder, barrier.getRelaxed()); });
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
      .Default([&](Operation *other) { return emitStandardOp(other); });
}

LogicalResult Emitter::emitStandardOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::ConstantOp constant) { return emitConstant(constant); })
      .Case([&](ub::PoisonOp poison) { return emitPoison(poison); })
      .Case([&](scf::ForOp loop) { return emitFor(loop); })
      .Case([&](scf::IfOp branch) { return emitIf(branch); })
      .Case([&](scf::WhileOp loop) { return emitWhile(loop); })
      .Default([&](Operation *other) {
        if (other->hasTrait<OpTrait::Elementwise>() || isa<arith::IndexCastOp>(other))
          return emitElementwise(other);
        return LogicalResult(other->emitOpError("is not supported on GPUs yet"));
      });
}

Value Emitter::asIndex(Value word) { return arith::IndexCastUIOp::create(builder, builder.getIndexType(), word); }

LogicalResult Emitter::emitClusterId(kgpu::ClusterIdOp op) {
  Value cluster =
      arith::DivUIOp::create(builder, ctaId(builder, tile::GridAxis::x), constantOf(builder, launch.cluster));
  return emitAs(op, {asIndex(cluster)});
}

LogicalResult Emitter::emitWarpAny(kgpu::WarpAnyOp op) {
  Value isTrue;
  for (Value held : registersOf(op.getValue()))
    isTrue = isTrue ? arith::OrIOp::create(builder, isTrue, held).getResult() : held;
  return emitAs(op, {anyLane(builder, isTrue)});
}

LogicalResult Emitter::emitPoison(ub::PoisonOp op) {
  Type type = op.getType();
  Value value = LLVM::PoisonOp::create(builder, getElementTypeOrSelf(type));
  return emitAs(op, TileRegisters(isa<RankedTensorType>(type) ? kgpu::layoutOf(type).registers() : 1, value));
}

} // namespace kpkg::lower::nvvm
