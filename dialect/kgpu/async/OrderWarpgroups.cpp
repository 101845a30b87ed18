// Lets warpgroups start their products in turn, so that the arithmetic of one runs under the products of another.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: kgpu.await %ring[%i]; %s = kgpu.wgmma ...; %o = kgpu.wgmma ...; %t = kgpu.wgmma_wait 1 %s; ...
// After:  kgpu.await %ring[%i]; kgpu.await_turn; %s = kgpu.wgmma ...; %o = kgpu.wgmma ...; kgpu.pass_turn; %t = kgpu.wgmma_wait 1 %s; ...
//
// On entry: a kernel with several warpgroups that compute, whose waits are where they stay. On exit: in loops that start several products
// and compute with their results, all products of an iteration are started within one turn. Without it such warpgroups fall in step by
// chance: measured on an H200, 579 or 695 TFLOP/s for nearly the same code of attention.
#include "dialect/kgpu/Passes.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUORDERWARPGROUPS
#include "dialect/kgpu/Passes.h.inc"

namespace {
struct OrderWarpgroups final : impl::KgpuOrderWarpgroupsBase<OrderWarpgroups> {
  void runOnOperation() override {
    if (getLaunch(getOperation()).consumers < 2)
      return;
    getOperation().walk([](scf::ForOp loop) {
      SmallVector<WgmmaOp> products(loop.getBody()->getOps<WgmmaOp>());
      // Turns do not nest: of loops within each other the innermost one takes them.
      bool hasInner = llvm::any_of(loop.getBody()->getOperations(), llvm::IsaPred<scf::ForOp>);
      if (products.size() < 2 || hasInner)
        return;
      // What runs under other warpgroups' products: reductions are the mark of arithmetic that takes as long as they do.
      bool computes = llvm::any_of(loop.getBody()->getOperations(), llvm::IsaPred<tile::ReduceOp, tile::CombineOp>);
      if (!computes)
        return;
      OpBuilder builder(products.front());
      AwaitTurnOp::create(builder, loop.getLoc());
      builder.setInsertionPointAfter(products.back());
      PassTurnOp::create(builder, loop.getLoc());
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
