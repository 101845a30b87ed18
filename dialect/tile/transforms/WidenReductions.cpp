// Computes sums and products of narrow floats in f32, and rounds them once at the end.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %s = tile.reduce sum %x axis 1 : tensor<1x64xbf16> -> tensor<1x1xbf16>
// After:  %w = arith.extf %x : ... to tensor<1x64xf32>
//         %t = tile.reduce sum %w axis 1 : tensor<1x64xf32> -> tensor<1x1xf32>
//         %s = arith.truncf %t : ... to tensor<1x1xbf16>
//
// On entry: any verified kernel.
// On exit: no sum or product of floats narrower than f32 remains.
//
// For targets that reduce elements in their own type.
#include "dialect/tile/ir/TileDialect.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace kpkg::tile {
#define GEN_PASS_DEF_TILEWIDENREDUCTIONS
#include "dialect/tile/transforms/Passes.h.inc"

using namespace mlir;

namespace {
bool isRoundedOften(ReduceOp reduce) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(reduce.getType()));
  return element && element.getWidth() < 32 &&
         (reduce.getKind() == ReduceKind::Sum || reduce.getKind() == ReduceKind::Prod);
}

struct TileWidenReductions final : impl::TileWidenReductionsBase<TileWidenReductions> {
  void runOnOperation() override {
    getOperation()->walk([](ReduceOp reduce) {
      if (!isRoundedOften(reduce))
        return;
      OpBuilder builder(reduce);
      Location loc = reduce.getLoc();
      auto type = cast<RankedTensorType>(reduce.getValue().getType());
      Value wide = arith::ExtFOp::create(builder, loc, type.clone(builder.getF32Type()), reduce.getValue());
      Value total = ReduceOp::create(builder, loc, reduce.getKind(), wide, reduce.getAxis());
      reduce.replaceAllUsesWith(arith::TruncFOp::create(builder, loc, reduce.getType(), total).getResult());
      reduce.erase();
    });
  }
};
} // namespace
} // namespace kpkg::tile
