// Checks layouts against each other and the launch, buffers against shared memory, and the launch against the chip.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On entry: any stage after kgpu-assign-layouts. The pass changes nothing. When it succeeds:
//  * Every tile has a layout, with no more lanes, warps and CTAs than the launch has.
//  * All tiles of an elementwise op have one layout.
//  * A reduction's result has the slice of its operand's layout; a broadcast's operand the slice of its result's.
//  * A thread holds all fields of the words that it unpacks.
//  * The launch fits the chip, and buffers with offsets lie within the kernel's shared memory.
//  * Accumulators of wgmma have the layout of the instruction, and ops of a role stand in the region of that role.
//  * CTAs of a cluster agree on every exchange, and none fills a buffer that another one still reads.
//  * Packed kernel blocks share nothing: they have no buffers, barriers, loops or asserts.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/PartLayouts.h"
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/kgpu/verify/Exchanges.h"
#include "dialect/kgpu/verify/VerifyingPass.h"
#include "dialect/layout/Algebra.h"
#include "dialect/layout/Subdivision.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUVERIFY
#include "dialect/kgpu/Passes.h.inc"

namespace {
using layout::Layout;

class Verifier {
public:
  explicit Verifier(tile::KernelOp kernel) : kernel(kernel), launch(getLaunch(kernel)) {}

  LogicalResult run() {
    if (failed(verifyLaunch()))
      return failure();
    WalkResult result = kernel.walk([&](Operation *op) { return WalkResult(verify(op)); });
    return failure(result.wasInterrupted() || failed(verifyExchanges(kernel)));
  }

private:
  LogicalResult verifyLaunch() {
    if (!kernel->hasAttr(tile::kTargetAttribute) || launch.threads == 0)
      return kernel.emitError("has no target or no launch: run kgpu-configure before");
    const TargetModel &target = targetOf(kernel);
    if (launch.threads > target.maxThreads)
      return kernel.emitError() << "has " << launch.threads << " threads, " << llvm::StringRef(target.name)
                                << " runs at most " << target.maxThreads << " in a CTA";
    if (launch.cluster > target.maxCluster)
      return kernel.emitError() << "has clusters of " << launch.cluster << " CTAs, " << llvm::StringRef(target.name)
                                << " runs at most " << target.maxCluster;
    if (launch.shared > int64_t(target.sharedPerCta))
      return kernel.emitError() << "needs " << launch.shared << " bytes of shared memory, "
                                << llvm::StringRef(target.name) << " has " << target.sharedPerCta << " for a CTA";
    return success();
  }

  LogicalResult verify(Operation *op) {
    for (Value value : op->getResults())
      if (failed(verifyTile(op, value.getType())))
        return failure();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          if (failed(verifyTile(op, argument.getType())))
            return failure();
    if (launch.blocks > 1 && failed(verifyPacked(op)))
      return failure();
    if (op->hasTrait<OpTrait::Elementwise>())
      return verifyElementwise(op);
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](tile::ReduceOp reduce) { return verifyReduction(op, reduce.getValue(), reduce.getAxis()); })
        .Case([&](tile::CombineOp combine) {
          for (Value input : combine.getInputs())
            if (failed(verifyReduction(op, input, combine.getAxis())))
              return failure();
          return success();
        })
        .Case([&](tile::BroadcastOp broadcast) { return verifyBroadcast(broadcast); })
        .Case([&](tile::UnpackOp unpack) { return verifyUnpack(unpack); })
        .Case([&](AllocOp alloc) { return verifyBuffer(alloc); })
        .Case([&](WgmmaOp product) {
          auto sum = cast<RankedTensorType>(product.getType());
          if (layoutOf(sum) != (isOfProducers(op) ? wgmmaMade(sum.getShape(), launch.consumers)
                                                  : wgmmaAccumulator(sum.getShape(), launch.consumers)))
            return LogicalResult(op->emitOpError() << "accumulates in the layout " << layoutOf(sum).str());
          if (auto lhs = dyn_cast<RankedTensorType>(product.getLhs().getType());
              lhs && layoutOf(lhs) != wgmmaLeftOperand(product.getLhs(), launch.consumers))
            return LogicalResult(op->emitOpError() << "reads a tile in the layout " << layoutOf(lhs).str());
          if (Value positions = product.getPositions();
              positions && layoutOf(positions) != wgmmaPositions(shapeOf(positions), launch.consumers))
            return LogicalResult(op->emitOpError() << "takes positions in the layout " << layoutOf(positions).str());
          return verifyRole(op, kConsumers | kProducers);
        })
        .Case<AwaitOp, ReleaseOp, ClearOutsideOp, SchedulingFenceOp, WgmmaWaitOp>(
            [&](Operation *) { return verifyRole(op, kConsumers | kProducers); })
        .Case([&](PublishOp) { return verifyRole(op, kProducers); })
        .Case<PublishAllOp, PingPongWaitOp, PingPongSignalOp, TensorStoreOp, ConsumeIndexOp>(
            [&](Operation *) { return verifyRole(op, kConsumers); })
        .Case([&](BarrierOp) {
          return isOfProducers(op) ? LogicalResult(op->emitOpError(
                                         "is in the role of one warpgroup, which meets others only at rings"))
                                   : success();
        })
        .Case<AcquireOp, TensorLoadOp, NextTileOp, PublishIndexOp>(
            [&](Operation *) { return verifyRole(op, kProducerWarp); })
        .Default(success());
  }

  LogicalResult verifyTile(Operation *op, Type type) {
    if (!isa<RankedTensorType>(type))
      return success();
    if (!hasLayout(type))
      return op->emitOpError() << "has a tile without a layout: " << type;
    const Layout &layout = layoutOf(type);
    if (layout.lanes() > launch.lanes() || layout.warps() > launch.layoutWarps() || layout.blocks() > launch.ctas())
      return op->emitOpError() << "has the layout " << layout.str() << ", but a kernel block has " << launch.lanes()
                               << " lanes, " << launch.layoutWarps() << " warps and " << launch.ctas() << " CTAs";
    constexpr unsigned warpgroupBits = ~0u << 2;
    if (isOfProducers(op) && ((layout.warps() - 1) & warpgroupBits & ~layout.freeBits(layout::Part::Warp)) != 0)
      return op->emitOpError() << "has the layout " << layout.str()
                               << ", of which the one warpgroup of its role has only a part";
    return verifyHeld(op, cast<RankedTensorType>(type));
  }

  /// Returns whether the op is in the role of the producer warpgroup, which computes operands for the consumers.
  static bool isOfProducers(Operation *op) {
    auto roles = op->getParentOfType<RolesOp>();
    return roles && roles.getProducers().isAncestor(op->getParentRegion());
  }

  /// Checks that no element is held only by warps that the layout has and the kernel block has not. Those are the last
  /// quarter of the layout's warps, where both of the highest bits are set.
  LogicalResult verifyHeld(Operation *op, RankedTensorType type) {
    const Layout &layout = layoutOf(type);
    if (layout.warps() <= launch.warps())
      return success();
    ArrayRef<Layout::Basis> bases = layout.bases(layout::Part::Warp);
    const Layout::Basis &high = bases[bases.size() - 1], &low = bases[bases.size() - 2];
    auto isFree = [](const Layout::Basis &basis) {
      return llvm::all_of(basis, [](int32_t coordinate) { return coordinate == 0; });
    };
    bool isPadding = false;
    for (auto [dim, extent] : llvm::enumerate(type.getShape()))
      isPadding |= high[dim] + low[dim] >= extent;
    if (isPadding || isFree(high) || isFree(low))
      return success();
    return op->emitOpError() << "has the layout " << layout.str() << ", but a kernel block has only " << launch.warps()
                             << " warps, and the others would hold elements";
  }

  LogicalResult verifyElementwise(Operation *op) {
    Type first;
    for (Value value :
         llvm::concat<Value>(SmallVector<Value>(op->getOperands()), SmallVector<Value>(op->getResults()))) {
      if (!isa<RankedTensorType>(value.getType()))
        continue;
      if (first && layoutOf(value) != layoutOf(first))
        return op->emitOpError() << "is elementwise, but has the layouts " << layoutOf(first).str() << " and "
                                 << layoutOf(value).str();
      first = value.getType();
    }
    return success();
  }

  /// Checks that `given` is the layout `wanted`, except for threads that hold copies.
  static LogicalResult expect(Operation *op, const Layout &given, llvm::Expected<Layout> wanted) {
    if (!wanted)
      return op->emitOpError() << llvm::toString(wanted.takeError());
    if (given == *wanted || layout::equalModuloBroadcast(given, *wanted))
      return success();
    return op->emitOpError() << "has the layout " << given.str() << " where " << wanted->str()
                             << " follows from its other tile";
  }

  static LogicalResult verifyReduction(Operation *op, Value from, unsigned axis) {
    for (Value result : op->getResults())
      if (failed(expect(op, layoutOf(result), layout::slice(layoutOf(from), axis))))
        return failure();
    return success();
  }

  static LogicalResult verifyBroadcast(tile::BroadcastOp op) {
    auto small = cast<RankedTensorType>(op.getValue().getType()), large = cast<RankedTensorType>(op.getType());
    return expect(op, layoutOf(small), sliced(layoutOf(large), small.getShape(), large.getShape()));
  }

  static LogicalResult verifyUnpack(tile::UnpackOp op) {
    const Layout &fields = layoutOf(op.getResult());
    std::optional<Layout> words = layout::coarsen(fields, fields.rank() - 1, op.getFields());
    if (!words)
      return op.emitOpError() << "has the layout " << fields.str() << ", which divides words among threads";
    return expect(op, layoutOf(op.getValue()), *words);
  }

  LogicalResult verifyBuffer(AllocOp op) {
    if (!op.getOffset())
      return success();
    auto type = cast<SharedType>(op.getResult().getType());
    int64_t offset = *op.getOffset();
    if (offset < 0 || offset % type.getAlignment() != 0 || offset + type.getSizeBytes() > launch.shared)
      return op.emitOpError() << "lies at byte " << offset << " of " << launch.shared << " and takes "
                              << type.getSizeBytes() << ", aligned to " << type.getAlignment();
    return success();
  }

  enum Roles : unsigned { kProducerWarp = 1, kConsumers = 2, kProducers = 4 };

  /// Checks that the op stands in one of these roles.
  static LogicalResult verifyRole(Operation *op, unsigned allowed) {
    auto roles = op->getParentOfType<RolesOp>();
    auto isIn = [&](Roles role, Region &region) {
      return (allowed & role) != 0 && region.isAncestor(op->getParentRegion());
    };
    if (roles && (isIn(kProducerWarp, roles.getProducerWarp()) || isIn(kConsumers, roles.getConsumers()) ||
                  isIn(kProducers, roles.getProducers())))
      return success();
    return op->emitOpError() << "belongs to the role that "
                             << (allowed == kProducerWarp ? "loads"
                                 : allowed == kProducers  ? "makes operands"
                                                          : "computes");
  }

  LogicalResult verifyPacked(Operation *op) {
    if (isa<AllocOp, BarrierOp, ClusterBarrierOp, tile::AssertOp, tile::PrintOp, tile::ForTilesOp, scf::ForOp,
            scf::WhileOp, scf::IfOp>(op))
      return op->emitOpError("cannot be in a kernel whose blocks are packed into CTAs");
    return success();
  }

  tile::KernelOp kernel;
  Launch launch;
};

struct KgpuVerify final : VerifyingPass<impl::KgpuVerifyBase<KgpuVerify>, Verifier> {};
} // namespace
} // namespace kpkg::kgpu
