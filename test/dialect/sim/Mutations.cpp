// Mutates compiled kernels; the verifier or the simulator must find each mutation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Mutations.h"
#include "dialect/kgpu/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

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

/// Moves the last op of a kind before `op` to after it. Operands of `op` stay before it.
void moveDown(Operation *op, TypeID what) {
  for (Operation *earlier = op->getPrevNode(); earlier; earlier = earlier->getPrevNode())
    if (earlier->getName().getTypeID() == what) {
      earlier->moveAfter(op);
      return;
    }
}

void moveUp(Operation *op, TypeID before) {
  for (Operation *earlier = op->getPrevNode(); earlier; earlier = earlier->getPrevNode())
    if (earlier->getName().getTypeID() == before) {
      op->moveBefore(earlier);
      return;
    }
}
} // namespace

std::vector<Mutation> mutations(ModuleOp module) {
  std::vector<Mutation> all;
  size_t index = 0;
  auto add = [&](size_t at, const std::string &name, std::function<void(Operation *)> change) {
    all.push_back({name, [at, change](ModuleOp copy) { change(opAt(copy, at)); }});
  };
  auto erased = [](Operation *op) {
    if (op->getNumResults())
      op->replaceAllUsesWith(op->getOperands().take_front(op->getNumResults()));
    op->erase();
  };
  auto useShift = [](int64_t by) {
    return [by](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (operand.get().getType().isInteger(32))
          operand.set(shifted(op, operand.get(), by));
    };
  };
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    size_t at = index++;
    std::string name = op->getName().stripDialect().str();
    bool inRoles = op->getParentOfType<kgpu::RolesOp>() != nullptr;
    if (isa<kgpu::AcquireOp, kgpu::AwaitOp, kgpu::ReleaseOp, kgpu::TensorLoadOp, kgpu::WgmmaWaitOp,
            kgpu::PingPongWaitOp, kgpu::PingPongSignalOp>(op))
      add(at, "no " + name, erased);
    if (isa<kgpu::AcquireOp, kgpu::AwaitOp, kgpu::ReleaseOp, kgpu::TensorLoadOp>(op)) {
      add(at, name + " of the next use", useShift(1));
      add(at, name + " two uses ahead", useShift(2));
      add(at, name + " twice",
          [](Operation *op) { op->getBlock()->getOperations().insert(std::next(op->getIterator()), op->clone()); });
    }
    if (isa<kgpu::AcquireOp>(op))
      for (int64_t by : {-128, 128})
        add(at, "acquire of other bytes", [by](Operation *op) {
          auto acquire = cast<kgpu::AcquireOp>(op);
          acquire.setBytes(uint64_t(int64_t(acquire.getBytes()) + by));
        });
    if (isa<kgpu::TensorLoadOp>(op)) {
      add(at, "copy to a place further on", [](Operation *op) {
        auto load = cast<kgpu::TensorLoadOp>(op);
        load.setDistance(load.getDistance() + 1024);
      });
      add(at, "copy by another map", [](Operation *op) {
        auto load = cast<kgpu::TensorLoadOp>(op);
        load.setMap(load.getMap() == 0 ? 1 : 0);
      });
      add(at, "copy before its slot is empty", [](Operation *op) { moveDown(op, TypeID::get<kgpu::AcquireOp>()); });
      for (unsigned dim = 0; dim < cast<kgpu::TensorLoadOp>(op).getOffsets().size(); ++dim)
        add(at, "copy from elsewhere", [dim](Operation *op) {
          OpOperand &offset = cast<kgpu::TensorLoadOp>(op).getOffsetsMutable()[dim];
          offset.set(shifted(op, offset.get(), 64));
        });
    }
    if (auto load = dyn_cast<kgpu::TensorLoadOp>(op); load && load.getMulticast())
      add(at, "copy for one CTA alone", [](Operation *op) { cast<kgpu::TensorLoadOp>(op).removeMulticastAttr(); });
    else if (load && module->walk([](kgpu::ClusterRankOp) { return WalkResult::interrupt(); }).wasInterrupted())
      add(at, "copy of one CTA for all", [](Operation *op) { cast<kgpu::TensorLoadOp>(op).setMulticast(0); });
    if (auto ring = dyn_cast<kgpu::RingOp>(op); ring && ring.getCluster())
      add(at, "release within a CTA", [](Operation *op) { cast<kgpu::RingOp>(op).setCluster(false); });
    if (isa<kgpu::ClusterRankOp>(op) && inRoles)
      add(at, "another CTA's tile", [](Operation *op) {
        Value other = shifted(op->getNextNode(), op->getResult(0), 1);
        op->getResult(0).replaceAllUsesExcept(other, other.getDefiningOp());
      });
    if (isa<kgpu::ReleaseOp>(op)) {
      add(at, "release before the wait", [](Operation *op) { moveUp(op, TypeID::get<kgpu::WgmmaWaitOp>()); });
      add(at, "release before the product", [](Operation *op) { moveUp(op, TypeID::get<kgpu::WgmmaOp>()); });
    }
    if (isa<kgpu::WgmmaOp>(op)) {
      add(at, "product before its operands", [](Operation *op) { moveDown(op, TypeID::get<kgpu::AwaitOp>()); });
      if (cast<kgpu::WgmmaOp>(op).getLhs().getDefiningOp<kgpu::SlotOp>())
        add(at, "operands exchanged with the last slot", [](Operation *op) {
          auto slot = cast<kgpu::WgmmaOp>(op).getLhs().getDefiningOp<kgpu::SlotOp>();
          OpBuilder builder(slot);
          slot.getIndexMutable().assign(arith::ConstantIndexOp::create(builder, slot.getLoc(), 1));
        });
      add(at, "sum that never starts", [](Operation *op) {
        OpBuilder builder(op);
        cast<kgpu::WgmmaOp>(op).getAddsMutable().assign(arith::ConstantIntOp::create(builder, op->getLoc(), 1, 1));
      });
      if (!matchPattern(cast<kgpu::WgmmaOp>(op).getAdds(), m_Zero()))
        add(at, "sum that always starts", [](Operation *op) {
          OpBuilder builder(op);
          cast<kgpu::WgmmaOp>(op).getAddsMutable().assign(arith::ConstantIntOp::create(builder, op->getLoc(), 0, 1));
        });
    }
    if (auto wait = dyn_cast<kgpu::WgmmaWaitOp>(op); wait && wait.getPending() == 0)
      add(at, "wait for all but one", [](Operation *op) { cast<kgpu::WgmmaWaitOp>(op).setPending(1); });
    if (isa<arith::RemUIOp>(op) && inRoles && op->getResult(0).getType().isInteger(32))
      add(at, "slots counted otherwise", [](Operation *op) { op->setOperand(1, shifted(op, op->getOperand(1), -1)); });
    if (isa<arith::AddIOp>(op) && inRoles && op->getResult(0).getType().isInteger(32))
      add(at, "uses counted by twos", [](Operation *op) { op->setOperand(1, shifted(op, op->getOperand(1), 1)); });
    if (isa<scf::ForOp>(op) && inRoles) {
      for (int64_t by : {-1, 1})
        add(at, "loop of another length", [by](Operation *op) {
          auto loop = cast<scf::ForOp>(op);
          loop.getUpperBoundMutable().assign(shifted(op, loop.getUpperBound(), by));
        });
      add(at, "uses from one on", [](Operation *op) {
        for (OpOperand &init : cast<scf::ForOp>(op).getInitArgsMutable())
          if (init.get().getType().isInteger(32))
            init.set(shifted(op, init.get(), 1));
      });
    }
    if (auto alloc = dyn_cast<kgpu::AllocOp>(op); alloc && alloc.getOffset() && *alloc.getOffset() != 0)
      add(at, "buffer over another", [](Operation *op) {
        auto alloc = cast<kgpu::AllocOp>(op);
        alloc.setOffset(*alloc.getOffset() - 512);
      });
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
