// Mutates compiled kernels; the verifier or the simulator must find each mutation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Mutations.h"
#include "dialect/kgpu/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace kpkg {

namespace {
/// Returns the op number `index` in the order of a walk.
Operation *opAt(ModuleOp module, size_t index) {
  Operation *found = nullptr;
  size_t at = 0;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (at++ == index)
      found = op;
  });
  return found;
}

Value shifted(Operation *op, Value use, int64_t by) {
  OpBuilder builder(op);
  Value more = arith::ConstantOp::create(builder, op->getLoc(), builder.getIntegerAttr(use.getType(), by));
  return arith::AddIOp::create(builder, op->getLoc(), use, more);
}

/// A way to break one op.
struct Rule {
  const char *name; ///< {0} stands for the op's name.
  bool (*applies)(Operation *op);
  void (*change)(Operation *op);
};

template <typename... Ops> bool is(Operation *op) { return isa<Ops...>(op); }

template <typename Op> bool isInRole(Operation *op) { return isa<Op>(op) && op->getParentOfType<kgpu::RolesOp>(); }

/// Returns whether the op computes a number of slots or uses.
template <typename Op> bool counts(Operation *op) {
  return isInRole<Op>(op) && op->getResult(0).getType().isInteger(32);
}

bool isMulticast(Operation *op) {
  auto load = dyn_cast<kgpu::TensorLoadOp>(op);
  return load && load.getMulticast();
}

/// Returns whether the op copies for its own CTA alone, in a kernel with clusters.
bool isOwnCopy(Operation *op) {
  auto findsRank = [](kgpu::ClusterRankOp) { return WalkResult::interrupt(); };
  return isa<kgpu::TensorLoadOp>(op) && !isMulticast(op) &&
         op->getParentOfType<ModuleOp>()->walk(findsRank).wasInterrupted();
}

template <unsigned dim> bool hasOffset(Operation *op) {
  auto load = dyn_cast<kgpu::TensorLoadOp>(op);
  return load && dim < load.getOffsets().size();
}

bool readsSlot(Operation *op) {
  auto product = dyn_cast<kgpu::WgmmaOp>(op);
  return product && product.getLhs().getDefiningOp<kgpu::SlotOp>();
}

void erase(Operation *op) {
  if (op->getNumResults())
    op->replaceAllUsesWith(op->getOperands().take_front(op->getNumResults()));
  op->erase();
}

void repeat(Operation *op) { op->getBlock()->getOperations().insert(std::next(op->getIterator()), op->clone()); }

template <int64_t by> void shiftUse(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get().getType().isInteger(32))
      operand.set(shifted(op, operand.get(), by));
}

template <int64_t by> void shiftSecond(Operation *op) { op->setOperand(1, shifted(op, op->getOperand(1), by)); }

template <int64_t by> void shiftBytes(Operation *op) {
  auto acquire = cast<kgpu::AcquireOp>(op);
  acquire.setBytes(uint64_t(int64_t(acquire.getBytes()) + by));
}

template <unsigned dim> void shiftOffset(Operation *op) {
  OpOperand &offset = cast<kgpu::TensorLoadOp>(op).getOffsetsMutable()[dim];
  offset.set(shifted(op, offset.get(), 64));
}

template <int64_t by> void shiftBound(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  loop.getUpperBoundMutable().assign(shifted(op, loop.getUpperBound(), by));
}

template <bool adds> void setAdds(Operation *op) {
  OpBuilder builder(op);
  cast<kgpu::WgmmaOp>(op).getAddsMutable().assign(arith::ConstantIntOp::create(builder, op->getLoc(), adds, 1));
}

/// Moves the last `Earlier` before `op` to after it. Operands of `op` stay before it.
template <typename Earlier> void moveAfter(Operation *op) {
  for (Operation *earlier = op->getPrevNode(); earlier; earlier = earlier->getPrevNode())
    if (isa<Earlier>(earlier)) {
      earlier->moveAfter(op);
      return;
    }
}

/// Moves `op` to before the last `Earlier`.
template <typename Earlier> void moveBefore(Operation *op) {
  for (Operation *earlier = op->getPrevNode(); earlier; earlier = earlier->getPrevNode())
    if (isa<Earlier>(earlier)) {
      op->moveBefore(earlier);
      return;
    }
}

constexpr auto usesSlot = is<kgpu::AcquireOp, kgpu::AwaitOp, kgpu::ReleaseOp, kgpu::TensorLoadOp>;
constexpr auto isCopy = is<kgpu::TensorLoadOp>;
constexpr auto isProduct = is<kgpu::WgmmaOp>;

const Rule rules[] = {
    {"no {0}",
     is<kgpu::AcquireOp, kgpu::AwaitOp, kgpu::ReleaseOp, kgpu::TensorLoadOp, kgpu::WgmmaWaitOp, kgpu::PingPongWaitOp,
        kgpu::PingPongSignalOp>,
     erase},
    {"{0} of the next use", usesSlot, shiftUse<1>},
    {"{0} two uses ahead", usesSlot, shiftUse<2>},
    {"{0} twice", usesSlot, repeat},
    {"acquire of other bytes", is<kgpu::AcquireOp>, shiftBytes<-128>},
    {"acquire of other bytes", is<kgpu::AcquireOp>, shiftBytes<128>},
    {"copy to a place further on", isCopy,
     [](Operation *op) {
       auto load = cast<kgpu::TensorLoadOp>(op);
       load.setDistance(load.getDistance() + 1024);
     }},
    {"copy by another map", isCopy,
     [](Operation *op) {
       auto load = cast<kgpu::TensorLoadOp>(op);
       load.setMap(load.getMap() == 0 ? 1 : 0);
     }},
    {"copy before its slot is empty", isCopy, moveAfter<kgpu::AcquireOp>},
    {"copy from elsewhere", hasOffset<0>, shiftOffset<0>},
    {"copy from elsewhere", hasOffset<1>, shiftOffset<1>},
    {"copy from elsewhere", hasOffset<2>, shiftOffset<2>},
    {"copy from elsewhere", hasOffset<3>, shiftOffset<3>},
    {"copy from elsewhere", hasOffset<4>, shiftOffset<4>},
    {"copy for one CTA alone", isMulticast, [](Operation *op) { cast<kgpu::TensorLoadOp>(op).removeMulticastAttr(); }},
    {"copy of one CTA for all", isOwnCopy, [](Operation *op) { cast<kgpu::TensorLoadOp>(op).setMulticast(0); }},
    {"release within a CTA",
     [](Operation *op) {
       auto ring = dyn_cast<kgpu::RingOp>(op);
       return ring && ring.getKind() == kgpu::RingKind::Cluster;
     },
     [](Operation *op) { cast<kgpu::RingOp>(op).setKind(kgpu::RingKind::Copied); }},
    {"another CTA's tile", isInRole<kgpu::ClusterRankOp>,
     [](Operation *op) {
       Value other = shifted(op->getNextNode(), op->getResult(0), 1);
       op->getResult(0).replaceAllUsesExcept(other, other.getDefiningOp());
     }},
    {"release before the wait", is<kgpu::ReleaseOp>, moveBefore<kgpu::WgmmaWaitOp>},
    {"release before the product", is<kgpu::ReleaseOp>, moveBefore<kgpu::WgmmaOp>},
    {"product before its operands", isProduct, moveAfter<kgpu::AwaitOp>},
    {"operands exchanged with the last slot", readsSlot,
     [](Operation *op) {
       auto slot = cast<kgpu::WgmmaOp>(op).getLhs().getDefiningOp<kgpu::SlotOp>();
       OpBuilder builder(slot);
       slot.getIndexMutable().assign(arith::ConstantIndexOp::create(builder, slot.getLoc(), 1));
     }},
    {"sum that never starts", isProduct, setAdds<true>},
    {"sum that always starts",
     [](Operation *op) {
       auto product = dyn_cast<kgpu::WgmmaOp>(op);
       return product && !matchPattern(product.getAdds(), m_Zero());
     },
     setAdds<false>},
    {"wait for all but one",
     [](Operation *op) {
       auto wait = dyn_cast<kgpu::WgmmaWaitOp>(op);
       return wait && wait.getPending() == 0;
     },
     [](Operation *op) { cast<kgpu::WgmmaWaitOp>(op).setPending(1); }},
    {"slots counted otherwise", counts<arith::RemUIOp>, shiftSecond<-1>},
    {"uses counted by twos", counts<arith::AddIOp>, shiftSecond<1>},
    {"loop of another length", isInRole<scf::ForOp>, shiftBound<-1>},
    {"loop of another length", isInRole<scf::ForOp>, shiftBound<1>},
    {"uses from one on", isInRole<scf::ForOp>,
     [](Operation *op) {
       for (OpOperand &init : cast<scf::ForOp>(op).getInitArgsMutable())
         if (init.get().getType().isInteger(32))
           init.set(shifted(op, init.get(), 1));
     }},
    {"buffer over another",
     [](Operation *op) {
       auto alloc = dyn_cast<kgpu::AllocOp>(op);
       return alloc && alloc.getOffset() && *alloc.getOffset() != 0;
     },
     [](Operation *op) {
       auto alloc = cast<kgpu::AllocOp>(op);
       alloc.setOffset(*alloc.getOffset() - 512);
     }},
};
} // namespace

std::vector<Mutation> mutations(ModuleOp module) {
  std::vector<Mutation> all;
  size_t index = 0;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    size_t at = index++;
    for (const Rule &rule : rules)
      if (rule.applies(op))
        all.push_back({llvm::formatv(rule.name, op->getName().stripDialect()).str(),
                       [at, &rule](ModuleOp copy) { rule.change(opAt(copy, at)); }});
  });
  return all;
}

Found search(ModuleOp module, function_ref<bool(ModuleOp)> isRefused, function_ref<bool(ModuleOp)> isSeen) {
  Found found;
  for (const Mutation &mutation : mutations(module)) {
    OwningOpRef<ModuleOp> copy = module.clone();
    mutation.apply(*copy);
    bool refused = isRefused(*copy), seen = isSeen(*copy);
    ++found.count;
    found.proven += refused;
    found.simulated += seen;
    found.either += refused || seen;
    if (!refused && !seen)
      found.missed += "\n  " + mutation.name;
  }
  printf("%lld changes: the verifier refuses %lld, the simulator finds %lld, both together %lld\n",
         static_cast<long long>(found.count), static_cast<long long>(found.proven),
         static_cast<long long>(found.simulated), static_cast<long long>(found.either));
  return found;
}

} // namespace kpkg
