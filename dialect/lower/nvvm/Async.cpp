// Emits rings and warp-specialised roles as the code of one thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/StepDivisions.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

namespace {
constexpr int64_t panelBytes = 128;
constexpr unsigned warpsOfWarpgroup = kgpu::kWarpgroupThreads / 32;

/// The registers of a thread of each role. setmaxnreg moves registers between roles in whole warpgroups.
struct RoleRegisters {
  unsigned load, compute, make;
};

/// Returns whether a step of a producer loop computes its source address in a branch, with a division, as for paged
/// caches.
bool looksUpInSteps(kgpu::RolesOp roles) {
  WalkResult found = roles.getProducerWarp().walk([](kgpu::AcquireOp acquire) {
    for (auto branch : acquire->getBlock()->getOps<scf::IfOp>())
      if (branch.walk([](arith::FloorDivSIOp) { return WalkResult::interrupt(); }).wasInterrupted())
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return found.wasInterrupted();
}

/// Distributes the registers that the CTA starts with: all threads have the same number, a multiple of the granularity.
/// A setmaxnreg.inc for more than the other roles release would wait forever.
RoleRegisters registersOfRoles(unsigned available, const kgpu::TargetModel &target, const kgpu::Launch &launch,
                               unsigned forLoads) {
  constexpr unsigned most = 240;
  unsigned threads = (launch.computing() + 1) * kgpu::kWarpgroupThreads;
  unsigned atStart = available / threads / target.registerGranularity * target.registerGranularity;
  unsigned left = atStart * threads - forLoads * kgpu::kWarpgroupThreads;
  auto evenly = [&](unsigned registers, unsigned warpgroups) {
    return std::min(registers / (warpgroups * kgpu::kWarpgroupThreads) / target.registerGranularity *
                        target.registerGranularity,
                    most);
  };
  // The remainder goes to the warpgroups that hold accumulators.
  unsigned make = launch.producers ? evenly(left, launch.computing()) : 0;
  return {forLoads, evenly(left - launch.producers * make * kgpu::kWarpgroupThreads, launch.consumers), make};
}

/// Returns the registers that the results of all products take in a consumer thread.
int64_t sumRegisters(kgpu::RolesOp roles) {
  int64_t registers = 0;
  roles.walk([&](kgpu::WgmmaOp product) { registers += kgpu::layoutOf(product.getResult()).registers(); });
  return registers;
}

/// The number of live-in and loop-carried values with which a step of a producer loop exceeds the fewest registers.
/// Products over windows have 15 and fit; products over windows of sub-pixel phases have 19.
constexpr int64_t manyNumbers = 19;

int64_t numbersOfSteps(kgpu::RolesOp roles) {
  int64_t most = 0;
  roles.getProducerWarp().walk([&](kgpu::AcquireOp acquire) {
    auto loop = dyn_cast<LoopLikeOpInterface>(acquire->getParentOp());
    if (!loop)
      return;
    llvm::SetVector<Value> outside;
    getUsedValuesDefinedAbove(loop->getRegions(), outside);
    outside.remove_if([](Value value) {
      return isa<BlockArgument>(value) ? isa<tile::KernelOp>(value.getParentBlock()->getParentOp())
                                       : isa<arith::ConstantOp>(value.getDefiningOp());
    });
    most = std::max<int64_t>(most, outside.size() + loop.getRegionIterArgs().size());
  });
  return most;
}

/// Chooses the registers of a producer thread. Multicast copies need more, because the parts of the CTAs have addresses
/// of their own.
unsigned registersForLoads(kgpu::RolesOp roles, const chips::Heuristics &heuristics, bool sharesCopies) {
  if (sumRegisters(roles) > heuristics.manySumRegisters)
    return looksUpInSteps(roles) ? sharesCopies ? 56 : 40 : 24;
  int64_t products = 0;
  roles.walk([&](kgpu::WgmmaOp) { ++products; });
  bool hasManyNumbers = products == 1 && numbersOfSteps(roles) >= manyNumbers;
  return dividesInSteps(roles) || hasManyNumbers || sumRegisters(roles) <= heuristics.moderateSumRegisters ? 56 : 40;
}
} // namespace

/// Returns the number of arrivals that release a slot: consumer warpgroups, of all CTAs that fill it. For a channel or
/// a published ring, each warp arrives.
unsigned Emitter::arrivalsToEmpty(kgpu::RingOp op) {
  kgpu::RingKind kind = op.getKind();
  if (kind == kgpu::RingKind::Channel || kind == kgpu::RingKind::Published)
    return launch.warps();
  return launch.producers ? kgpu::releasing(op)
                          : launch.consumers * (kind == kgpu::RingKind::Cluster ? launch.cluster : 1);
}

LogicalResult Emitter::emitRing(kgpu::RingOp op) {
  Value barriers = scalar(op.getBarriers());
  define(op, {barriers});
  int64_t slots = op.getType().getSlots();
  kgpu::RingKind kind = op.getKind();
  sharesTiles |= kind == kgpu::RingKind::Shared;
  sharesCopies |= kind == kgpu::RingKind::Cluster;
  Value first = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, place.thread(), constantOf(builder, 0));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(scf::IfOp::create(builder, first, /*withElseRegion=*/false).thenBlock());
  for (int64_t slot = 0; slot < slots; ++slot) {
    barrierInit(builder, bytesBehind(builder, barriers, slot * barrierBytes),
                kind == kgpu::RingKind::Shared      ? launch.consumers
                : kind == kgpu::RingKind::Published ? launch.producers * warpsOfWarpgroup
                                                    : 1);
    barrierInit(builder, bytesBehind(builder, barriers, (slots + slot) * barrierBytes), arrivalsToEmpty(op));
  }
  fenceBarrierInit(builder);
  return success();
}

LogicalResult Emitter::emitRoles(kgpu::RolesOp op) {
  if (sharesCopies) // fence.mbarrier_init has published the barriers, so a relaxed barrier suffices.
    clusterBarrier(builder, /*isRelaxed=*/true);
  else
    ctaBarrier(builder); // Rings are initialised.
  Value warp = uniform(builder, arith::ShRUIOp::create(builder, place.thread(), constantOf(builder, 5)));
  warpgroup = arith::ShRUIOp::create(builder, warp, constantOf(builder, 2));
  ownBarrier = arith::AddIOp::create(builder, warpgroup, constantOf(builder, firstWarpgroupBarrier));
  Value loads =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, warpgroup, constantOf(builder, launch.computing()));
  const kgpu::TargetModel &target = kgpu::targetOf(kernel);
  // No registers move if all threads may have the maximum, or need no more than their share. ptxas then allocates
  // registers itself. It ignores (C7508) a setmaxnreg for fewer registers than at the entry.
  unsigned available = target.registersPerSm / std::max(launch.minCtas, 1u);
  bool moves =
      available < target.maxRegisters * launch.threads && sumRegisters(op) >= target.heuristics.fewSumRegisters;
  unsigned forLoads =
      launch.loadRegisters ? launch.loadRegisters : registersForLoads(op, target.heuristics, sharesCopies);
  RoleRegisters limits = registersOfRoles(available, target, launch, forLoads);
  // With more sums, the producer warp has no registers for reciprocals.
  if (sumRegisters(op) <= target.heuristics.manySumRegisters)
    multiplyInSteps(op);
  if (moves)
    startWithShareOfRegisters(builder);
  auto branch = scf::IfOp::create(builder, loads, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    if (moves)
      limitRegisters(builder, limits.load, /*raises=*/false);
    Value first = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, warp,
                                        constantOf(builder, launch.computing() * warpsOfWarpgroup));
    builder.setInsertionPointToStart(scf::IfOp::create(builder, first, /*withElseRegion=*/false).thenBlock());
    builder.setInsertionPointToStart(
        scf::IfOp::create(builder, electLane(builder), /*withElseRegion=*/false).thenBlock());
    if (failed(emitRegion(op.getProducerWarp())))
      return failure();
    // A CTA's shared memory must stay allocated while other CTAs may signal its barriers.
    builder.setInsertionPointToEnd(branch.thenBlock());
    builder.setInsertionPoint(branch.thenBlock()->getTerminator());
    if (sharesCopies)
      waitForCluster(builder);
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.elseBlock());
  if (!op.getProducers().empty() && failed(emitProducers(op, moves ? limits.make : 0)))
    return failure();
  if (moves)
    limitRegisters(builder, limits.compute, /*raises=*/true);
  if (op.walk([](kgpu::PingPongWaitOp) { return WalkResult::interrupt(); }).wasInterrupted())
    signalFirstWarpgroup();
  if (failed(emitRegion(op.getConsumers())))
    return failure();
  // The CTA's shared memory must stay allocated until the last copies have read it.
  if (storesByMaps)
    waitForBulkCopies(builder);
  if (sharesCopies)
    waitForCluster(builder);
  return success();
}

/// Emits the role of the producer warpgroup, and leaves the insertion point in the branch of the consumers. In layouts,
/// the producer warpgroup has the number 0, like the first consumer.
LogicalResult Emitter::emitProducers(kgpu::RolesOp op, unsigned registersOfThread) {
  Value makes =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, warpgroup, constantOf(builder, launch.consumers));
  auto branch = scf::IfOp::create(builder, makes, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(branch.thenBlock());
  if (registersOfThread != 0)
    limitRegisters(builder, registersOfThread, /*raises=*/true);
  Value number = std::exchange(warpgroup, constantOf(builder, 0));
  if (failed(emitRegion(op.getProducers())))
    return failure();
  warpgroup = number;
  builder.setInsertionPointToStart(branch.elseBlock());
  return success();
}

LogicalResult Emitter::emitRegion(Region &region) {
  for (Operation &op : region.front())
    if (failed(emit(&op)))
      return failure();
  return success();
}

void Emitter::emitBarrier() {
  if (warpgroup)
    namedBarrier(builder, constantOf(builder, computeBarrier), launch.threadsOfBlock());
  else
    ctaBarrier(builder);
}

/// Returns the i32 barrier at which warpgroup `number` waits for its turn.
static Value turnBarrier(ImplicitLocOpBuilder &builder, const kgpu::Launch &launch, Value number) {
  return arith::AddIOp::create(builder, number, constantOf(builder, firstWarpgroupBarrier + launch.computing()));
}

// Two warpgroups use a ping-pong barrier: the next warpgroup waits for its turn, and its predecessor only arrives.
static constexpr unsigned turnThreads = 2 * kgpu::kWarpgroupThreads;

void Emitter::signalFirstWarpgroup() {
  Value isLast =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, warpgroup, constantOf(builder, launch.consumers - 1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(scf::IfOp::create(builder, isLast, /*withElseRegion=*/false).thenBlock());
  arriveAtBarrier(builder, turnBarrier(builder, launch, constantOf(builder, 0)), turnThreads);
}

LogicalResult Emitter::emitPingPongWait(kgpu::PingPongWaitOp) {
  namedBarrier(builder, turnBarrier(builder, launch, warpgroup), turnThreads);
  return success();
}

LogicalResult Emitter::emitPingPongSignal(kgpu::PingPongSignalOp) {
  Value next = arith::AddIOp::create(builder, warpgroup, constantOf(builder, 1));
  Value wrapped = arith::RemUIOp::create(builder, next, constantOf(builder, launch.consumers));
  arriveAtBarrier(builder, turnBarrier(builder, launch, wrapped), turnThreads);
  return success();
}

LogicalResult Emitter::emitAcquire(kgpu::AcquireOp op) {
  RingUse use = ringUse(builder, scalar(op.getRing()), op.getRing().getType().getSlots(), scalar(op.getUse()));
  // The phase before the first one counts as complete, so the first lap finds all slots empty.
  ptx::barrierWait(builder, use.empty, arith::XOrIOp::create(builder, use.parity, constantOf(builder, 1)));
  barrierExpect(builder, use.full, op.getBytes());
  return success();
}

LogicalResult Emitter::emitAwait(kgpu::AwaitOp op) {
  RingUse use = ringUse(builder, scalar(op.getRing()), op.getRing().getType().getSlots(), scalar(op.getUse()));
  ptx::barrierWait(builder, use.full, use.parity);
  return success();
}

LogicalResult Emitter::emitRelease(kgpu::ReleaseOp op) {
  RingUse use = ringUse(builder, scalar(op.getRing()), op.getRing().getType().getSlots(), scalar(op.getUse()));
  if (auto ring = op.getRing().getDefiningOp<kgpu::RingOp>(); ring && ring.getKind() == kgpu::RingKind::Published) {
    warpBarrier(builder); // All lanes have read the slot.
    Value lane = arith::AndIOp::create(builder, place.thread(), constantOf(builder, 31));
    ptx::barrierArriveWhere(builder, use.empty,
                            arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, lane, constantOf(builder, 0)));
    return success();
  }
  Value rest = arith::AndIOp::create(builder, place.thread(), constantOf(builder, kgpu::kWarpgroupThreads - 1));
  if (auto ring = op.getRing().getDefiningOp<kgpu::RingOp>(); ring && ring.getKind() == kgpu::RingKind::Cluster) {
    // One thread signals each other CTA of the cluster. The local barrier takes a cheaper path.
    Value other = arith::AndIOp::create(builder, arith::AddIOp::create(builder, ctaOfCluster(builder), rest),
                                        constantOf(builder, launch.cluster - 1));
    Value isOther = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult,
                                          arith::SubIOp::create(builder, rest, constantOf(builder, 1)),
                                          constantOf(builder, launch.cluster - 1));
    ptx::barrierArriveWhere(builder, remoteAddress(builder, use.empty, other), isOther);
  }
  ptx::barrierArriveWhere(builder, use.empty,
                          arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, rest, constantOf(builder, 0)));
  return success();
}

LogicalResult Emitter::emitTensorLoad(kgpu::TensorLoadOp op) {
  RingUse use = ringUse(builder, scalar(op.getRing()), op.getRing().getType().getSlots(), scalar(op.getUse()));
  auto view = cast<tile::ViewType>(op.getView().getType());
  // The innermost dimension comes first, as in the tensor map.
  SmallVector<Value> coordinates;
  kgpu::TensorMapAttr map = kgpu::tensorMapsOf(kernel)[op.getMap()];
  Value destination = bytesBehind(builder, scalar(op.getBuffer()), op.getDistance()),
        rank = op.getMulticast() ? ctaOfCluster(builder) : Value();
  auto parts = [&](int64_t size) {
    return arith::MulIOp::create(builder, rank, constantOf(builder, size)).getResult();
  };
  auto add = [&](int64_t dim) {
    Value coordinate = arith::IndexCastOp::create(builder, builder.getI32Type(), scalar(op.getOffsets()[dim]));
    if (rank && dim == static_cast<int64_t>(*op.getMulticast()))
      coordinate = arith::AddIOp::create(builder, coordinate, parts(map.getBox()[dim]));
    coordinates.push_back(coordinate);
  };
  add(view.getUnit());
  for (int64_t dim = view.getRank(); dim-- > 0;)
    if (dim != view.getUnit())
      add(dim);
  SmallVector<Value> moves;
  for (Value tap : llvm::reverse(op.getTaps()))
    moves.push_back(arith::IndexCastOp::create(builder, builder.getI16Type(), scalar(tap)));
  if (rank)
    destination = bytesBehind(builder, destination, parts(map.bytes(view.getElementBytes())));
  tensorCopy(builder, destination, tensorMap(op.getMap()), coordinates, moves, use.full, rank ? launch.cluster : 1);
  return success();
}

LogicalResult Emitter::emitClearOutside(kgpu::ClearOutsideOp op) {
  kgpu::SharedType type = op.getBuffer().getType();
  constexpr int64_t chunkBytes = 16, chunksOfRow = panelBytes / chunkBytes;
  int64_t rows = type.getShape()[1 - *kgpu::panelDim(type)], chunks = type.getSizeBytes() / chunkBytes;
  Value begin = scalar(op.getBegin()), end = scalar(op.getEnd());
  auto compare = [&](arith::CmpIPredicate how, Value left, Value right) {
    return arith::CmpIOp::create(builder, how, left, right).getResult();
  };
  auto either = [&](Value left, Value right) { return arith::OrIOp::create(builder, left, right).getResult(); };
  Value some = either(compare(arith::CmpIPredicate::sgt, begin, arith::ConstantIndexOp::create(builder, 0)),
                      compare(arith::CmpIPredicate::slt, end, arith::ConstantIndexOp::create(builder, rows)));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(scf::IfOp::create(builder, some, /*withElseRegion=*/false).thenBlock());
  Value thread = arith::AndIOp::create(builder, place.thread(), constantOf(builder, kgpu::kWarpgroupThreads - 1));
  auto loop =
      scf::ForOp::create(builder, thread, constantOf(builder, chunks), constantOf(builder, kgpu::kWarpgroupThreads));
  {
    // Rows of 128 bytes are consecutive, panel by panel. The swizzle within a row is irrelevant, because whole rows are
    // cleared.
    OpBuilder::InsertionGuard inLoop(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value chunk = loop.getInductionVar();
    Value line = arith::DivUIOp::create(builder, chunk, constantOf(builder, chunksOfRow));
    Value row = arith::IndexCastOp::create(
        builder, builder.getIndexType(), arith::RemUIOp::create(builder, line, constantOf(builder, rows)).getResult());
    Value outside =
        either(compare(arith::CmpIPredicate::slt, row, begin), compare(arith::CmpIPredicate::sge, row, end));
    builder.setInsertionPointToStart(scf::IfOp::create(builder, outside, /*withElseRegion=*/false).thenBlock());
    Value address = bytesBehind(builder, scalar(op.getBuffer()),
                                arith::MulIOp::create(builder, chunk, constantOf(builder, chunkBytes)));
    auto words = VectorType::get(chunkBytes / 4, builder.getI32Type());
    Value zeros =
        arith::ConstantOp::create(builder, words, DenseElementsAttr::get(words, builder.getI32IntegerAttr(0)));
    LLVM::StoreOp::create(builder, zeros, address, /*alignment=*/chunkBytes);
  }
  fenceForCopies(builder);
  namedBarrier(builder, ownBarrier, kgpu::kWarpgroupThreads);
  return success();
}

LogicalResult Emitter::emitSchedulingFence(kgpu::SchedulingFenceOp op) {
  RingUse use = ringUse(builder, scalar(op.getRing()), op.getRing().getType().getSlots(), scalar(op.getUse()));
  ptx::barrierWait(builder, use.full, use.parity);
  return success();
}

} // namespace kpkg::lower::nvvm
