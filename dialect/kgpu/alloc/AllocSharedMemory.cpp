// Assigns offsets in shared memory to buffers; buffers that are not live at the same time may overlap.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %m = kgpu.alloc : !kgpu.smem<1x4xf32>
// After:  %m = kgpu.alloc offset 0 : !kgpu.smem<1x4xf32>, and `shared` = bytes on the kernel
//
// A buffer is live from its first to its last access. An access inside a loop counts for the whole loop, unless the
// buffer is allocated in that loop. Buffers of TMA stores stay live, since the copies end later. Larger buffers are
// placed first, at the lowest offset that is free during their whole live range. So the result depends on the IR only.
// Small buffers, such as those of reductions, overlap with nothing: a few bytes are cheaper than the barrier before the
// bytes' second use.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/Positions.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kpkg::kgpu {

#define GEN_PASS_DEF_KGPUALLOCSMEM
#include "dialect/kgpu/Passes.h.inc"

namespace {

constexpr int64_t kSmallBytes = 512;

struct Buffer {
  AllocOp op;
  int64_t size = 0, alignment = 1;
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1; ///< live range, in positions
  int64_t offset = 0;

  bool livesWith(const Buffer &other) const { return first <= other.last && other.first <= last; }
};

void collectAccesses(Value buffer, SmallVectorImpl<Operation *> &users) {
  for (Operation *user : buffer.getUsers()) {
    users.push_back(user);
    if (aliasedBuffer(user))
      collectAccesses(user->getResult(0), users);
  }
}

Buffer lifeOf(AllocOp op, const Positions &positions) {
  auto type = cast<SharedType>(op.getResult().getType());
  Buffer buffer{op, type.getSizeBytes(), type.getAlignment()};
  SmallVector<Operation *> users;
  collectAccesses(op.getResult(), users);
  for (Operation *user : users) {
    // The ancestor of `user` in the buffer's own block.
    Operation *around = op->getBlock()->findAncestorOpInBlock(*user);
    auto [begin, end] = positions.of.at(around);
    buffer.first = std::min(buffer.first, begin);
    buffer.last = std::max(buffer.last, end);
  }
  // The TMA may still copy from the buffer.
  if (llvm::any_of(users, llvm::IsaPred<TensorStoreOp>))
    buffer.last = positions.next;
  // Other CTAs may write to the buffer at any time.
  bool isRemote = llvm::any_of(users, llvm::IsaPred<ExchangeOp, ExchangeInitOp>);
  // At thread level the author's barriers do not order accesses to different memories.
  bool isOfThreads = tile::isOfThreads(op->getParentOfType<tile::KernelOp>());
  if (buffer.size <= kSmallBytes || isRemote || isOfThreads) {
    buffer.first = 0;
    buffer.last = positions.next;
  }
  return buffer;
}

void place(MutableArrayRef<Buffer> buffers) {
  SmallVector<Buffer *> order;
  for (Buffer &buffer : buffers)
    order.push_back(&buffer);
  llvm::stable_sort(order, [](Buffer *left, Buffer *right) { return left->size > right->size; });
  SmallVector<Buffer *> placed;
  for (Buffer *buffer : order) {
    SmallVector<Buffer *> rivals;
    llvm::copy_if(placed, std::back_inserter(rivals), [&](Buffer *other) { return other->livesWith(*buffer); });
    llvm::sort(rivals, [](Buffer *left, Buffer *right) { return left->offset < right->offset; });
    int64_t offset = 0;
    for (Buffer *other : rivals)
      if (offset + buffer->size > other->offset)
        offset = std::max<int64_t>(offset, llvm::alignTo(other->offset + other->size, buffer->alignment));
    buffer->offset = offset;
    placed.push_back(buffer);
  }
}

struct AllocSharedMemory final : impl::KgpuAllocSmemBase<AllocSharedMemory> {
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    Positions positions(kernel.getBody().front());
    SmallVector<Buffer> buffers;
    kernel.walk([&](AllocOp op) { buffers.push_back(lifeOf(op, positions)); });
    place(buffers);
    int64_t bytes = 0;
    for (Buffer &buffer : buffers) {
      buffer.op.setOffset(buffer.offset);
      bytes = std::max(bytes, buffer.offset + buffer.size);
    }
    const TargetModel &target = targetOf(kernel);
    if (bytes > int64_t(target.sharedPerCta)) {
      kernel.emitError() << "needs " << bytes << " bytes of shared memory, " << llvm::StringRef(target.name) << " has "
                         << target.sharedPerCta << " for a CTA";
      return signalPassFailure();
    }
    Launch launch = getLaunch(kernel);
    launch.shared = bytes;
    setLaunch(kernel, launch);
  }
};

} // namespace
} // namespace kpkg::kgpu
