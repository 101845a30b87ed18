// Skips multiplications of accumulators by 1, warp by warp (conditional rescaling).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: producers { %keep = arith.select %grows, %k, 1; kgpu.publish %keep ... }
//         consumers { %keep = kgpu.local_load ...; %factor = tile.broadcast %keep; %r = arith.mulf %sum, %factor }
// After:  producers { %keep = arith.select %grows, %k, 1; kgpu.publish %keep ... }
//         consumers { %keep = kgpu.local_load ...; %factor = tile.broadcast %keep; %some = kgpu.warp_any (%keep != 1)
//                   %r = scf.if %some { %t = arith.mulf %sum, %factor; scf.yield %t } else { scf.yield %sum } }
//
// On entry: a kernel whose launch has `producers`, after kgpu-pipeline-waits has placed the waits.
// On exit: accumulators are multiplied by a published factor only in warps where the factor is not 1 everywhere. A
// factor qualifies if the producer warpgroup computes it by a `select` with a branch of 1. The multiplications stand
// together, at the place of the first.
//
// The pass is not for kernels without a producer warpgroup: if several warpgroups do the same work, each hides the
// arithmetic of the others. With a producer warpgroup, all consumers wait for it. Multiplications of accumulators take
// the issue cycles that it needs. Measured on an H200 with latent attention: 5 to 6 % of all time.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPURESCALECONDITIONALLY
#include "dialect/kgpu/Passes.h.inc"

namespace {
bool isOne(Value value) { return matchPattern(value, m_OneFloat()); }

/// Returns the multiplications of accumulators by a factor that is loaded as one value for each row, in program order.
SmallVector<arith::MulFOp> productsWith(LocalLoadOp factor) {
  SmallVector<arith::MulFOp> products;
  for (Operation *user : factor->getUsers())
    if (auto wide = dyn_cast<tile::BroadcastOp>(user))
      for (Operation *op : wide->getUsers())
        if (auto product = dyn_cast<arith::MulFOp>(op); product && product->getBlock() == factor->getBlock() &&
                                                        product.getRhs() == wide.getResult() &&
                                                        product.getLhs() != wide.getResult())
          products.push_back(product);
  llvm::sort(products, [](arith::MulFOp one, arith::MulFOp other) { return one->isBeforeInBlock(other); });
  return products;
}

constexpr Optimisation kRescaling{"kgpu-rescale-conditionally", "rescaling of sums where the factor is not 1"};

void skipProducts(LocalLoadOp factor) {
  SmallVector<arith::MulFOp> products = productsWith(factor);
  if (products.empty())
    return remarkRefused(factor, kRescaling, "no sum of products is multiplied by the factor alone");
  remarkApplied(products.front(), kRescaling, "a warp whose factors are all 1 skips the multiplications");
  arith::MulFOp first = products.front();
  // All stand at the first one: ptxas would wait if an accumulator were scaled while a product of another one runs.
  llvm::erase_if(products, [&](arith::MulFOp product) {
    Operation *source = product.getLhs().getDefiningOp();
    return source && source->getBlock() == factor->getBlock() && !source->isBeforeInBlock(first);
  });
  for (Operation *user : factor->getUsers())
    if (isa<tile::BroadcastOp>(user) && user->getBlock() == factor->getBlock() && !user->isBeforeInBlock(first))
      user->moveBefore(first);
  Location loc = factor.getLoc();
  OpBuilder builder(first);
  auto type = cast<RankedTensorType>(factor.getType());
  Value ones = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), 1.0)));
  Value differs = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, factor, ones);
  Value some = WarpAnyOp::create(builder, loc, builder.getI1Type(), differs);
  auto sums = llvm::map_to_vector(products, [](arith::MulFOp product) { return product.getLhs(); });
  auto choice = scf::IfOp::create(builder, loc, TypeRange(ValueRange(sums)), some, /*withElseRegion=*/true);
  for (auto [product, result] : llvm::zip(products, choice.getResults())) {
    product.replaceAllUsesWith(result);
    product->moveBefore(choice.thenBlock(), choice.thenBlock()->end());
  }
  builder.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(builder, loc,
                       llvm::map_to_vector(products, [](arith::MulFOp product) { return product.getResult(); }));
  builder.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(builder, loc, sums);
}

struct RescaleConditionally final : impl::KgpuRescaleConditionallyBase<RescaleConditionally> {
  void runOnOperation() override {
    getOperation().walk([](RolesOp roles) {
      DenseSet<Value> mostlyOne; // buffers of published tiles
      roles.getProducers().walk([&](PublishOp hand) {
        auto select = hand.getValue().getDefiningOp<arith::SelectOp>();
        if (select && (isOne(select.getTrueValue()) || isOne(select.getFalseValue())))
          mostlyOne.insert(rootBuffer(hand.getBuffer()));
      });
      SmallVector<LocalLoadOp> factors;
      roles.getConsumers().walk([&](LocalLoadOp load) {
        if (mostlyOne.contains(rootBuffer(load.getBuffer())))
          factors.push_back(load);
      });
      for (LocalLoadOp factor : factors)
        skipProducts(factor);
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
