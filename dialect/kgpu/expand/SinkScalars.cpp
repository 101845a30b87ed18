// Moves scalar arithmetic of a tile behind its first product, so that both overlap.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %t = ... { %m = arith.divui %t, %rows; ...
//           kgpu.await %ring[%i]; %d = kgpu.wgmma %q, %k, ...; %s = kgpu.wgmma_wait 0 %d; ... %m ... }
// After:  scf.for %t = ... {
//           kgpu.await %ring[%i]; %d = kgpu.wgmma %q, %k, ...; %m = arith.divui %t, %rows; ...
//           %s = kgpu.wgmma_wait 0 %d; ... %m ... }
//
// On entry: a kernel with roles, products and their waits.
// On exit: in blocks that start a product before a loop with products, scalar arithmetic follows the first product.
// Arithmetic that ops before the product need stays. The pass covers the consumers and the producer warpgroup.
//
// The coordinates of a tile take several dependent divisions: hundreds of cycles in which nothing else would run. A
// product needs none of them, since the producer warp has already copied its operands.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/ir/Walks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUSINKSCALARS
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// Returns whether the op is scalar arithmetic, or places a view with it.
bool isScalar(Operation &op) {
  return (isa<arith::ArithDialect>(op.getDialect()) || isa<tile::DropOp, tile::SliceOp>(op)) &&
         isMemoryEffectFree(&op) && llvm::none_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

void sink(Block &block) {
  auto products = block.getOps<WgmmaOp>();
  if (products.empty())
    return;
  WgmmaOp first = *products.begin();
  bool loops = llvm::any_of(block.getOps<scf::ForOp>(),
                            [&](scf::ForOp loop) { return first->isBeforeInBlock(loop) && containsOp<WgmmaOp>(loop); });
  if (!loops)
    return;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(llvm::make_range(block.begin(), first->getIterator()))))
    if (isScalar(op) && !op.use_empty() && llvm::all_of(op.getUsers(), [&](Operation *user) {
          return first->isBeforeInBlock(block.findAncestorOpInBlock(*user));
        }))
      op.moveAfter(first);
}

struct SinkScalars final : impl::KgpuSinkScalarsBase<SinkScalars> {
  void runOnOperation() override {
    getOperation().walk([](RolesOp roles) {
      for (Region *role : {&roles.getConsumers(), &roles.getProducers()})
        role->walk([](Block *block) { sink(*block); });
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
