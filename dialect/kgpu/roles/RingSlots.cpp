// Chooses how many slots the ring buffers of a kernel get.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/roles/RingSlots.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace kpkg::kgpu {

namespace {
constexpr int64_t kMostSlots = 8;
/// With this many slots, enough bytes are in flight.
constexpr int64_t kManySlots = 4;
/// For tiles that warpgroups share; the description of kgpu.ring gives the reason.
constexpr int64_t kFewestSharedSlots = 2, kSlotsForPipelining = 4;
/// Shared memory that is left for barriers and partial sums.
constexpr int64_t kReservedBytes = 2048;

/// Returns the bytes of shared memory outside of rings, with the operands that kgpu-split-producers will publish.
int64_t bytesBesideRings(tile::KernelOp kernel, ArrayRef<StreamedDot> products) {
  int64_t taken = kReservedBytes;
  kernel.walk([&](AllocOp alloc) { taken += cast<SharedType>(alloc.getResult().getType()).getSizeBytes(); });
  SetVector<Value> published;
  for (const StreamedDot &product : products)
    if (getLaunch(kernel).producers != 0 && readsComputed(product))
      published.insert(tile::DotOp(product.dot).getLhs());
  for (Value tile : published)
    taken +=
        cast<RankedTensorType>(tile.getType()).getNumElements() * elementBytes(getElementTypeOrSelf(tile.getType()));
  return taken;
}
} // namespace

FailureOr<RingSlots> chooseSlots(tile::KernelOp kernel, ArrayRef<StreamedDot> products, ArrayRef<RingDemand> rings,
                                 int64_t sharedBytes) {
  int64_t taken = bytesBesideRings(kernel, products);
  unsigned deepest = 0;
  for (const RingDemand &ring : rings)
    deepest = std::max(deepest, ring.depth);
  int64_t often = 0, seldom = 0;
  for (const RingDemand &ring : rings)
    (ring.depth == deepest ? often : seldom) += ring.bytes;
  const TargetModel &target = targetOf(kernel);
  int64_t ctas = getLaunch(kernel).minCtas;
  int64_t bytes = (ctas > 1 ? target.sharedPerSm / ctas - target.reservedShared : target.sharedPerCta) - taken;
  // Shared tiles get the slots for pipelined products if each ring of copies still has two slots.
  int64_t sharedSlots =
      bytes - kSlotsForPipelining * sharedBytes >= seldom + 2 * often ? kSlotsForPipelining : kFewestSharedSlots;
  bytes -= sharedSlots * sharedBytes;
  auto roomBeside = [&](int64_t slots) { return (bytes - slots * seldom) / often; };
  int64_t stages = kernel.getHint(tile::Hint::Stages);
  int64_t most = stages != 0 ? stages : kMostSlots;
  int64_t seldomSlots = roomBeside(2) >= std::min(kManySlots, std::max<int64_t>(roomBeside(1), 2)) ? 2 : 1;
  int64_t slots = std::min(most, roomBeside(seldomSlots));
  if (slots < 2)
    return kernel.emitError() << "needs " << taken + sharedSlots * sharedBytes + seldom + 2 * often
                              << " bytes of shared memory for operands that are copied ahead";
  auto ofRings =
      llvm::map_to_vector(rings, [&](const RingDemand &ring) { return ring.depth == deepest ? slots : seldomSlots; });
  return RingSlots{SmallVector<int64_t>(ofRings), sharedSlots};
}

} // namespace kpkg::kgpu
