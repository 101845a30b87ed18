// Rewrites dots of 8-bit elements to dots of wider elements, which hold all values exactly.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   %d = tile.dot %a, %b, %c : tensor<MxKxf8E5M2>, ..., tensor<MxNxf32>     operands become bf16
//   %d = tile.dot %a, %b, %c : tensor<MxKxi8>, ..., tensor<MxNxi32>         all becomes f64
//
// Sums of i8 products below 2^53 are exact in f64, and are then wrapped to i32. The microkernel supports f16, bf16, f32
// and f64 operands only.
#include "dialect/lower/cpu/WidenDots.h"
#include "dialect/lower/math/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static Type withElement(Value tile, Type element) {
  return RankedTensorType::get(cast<RankedTensorType>(tile.getType()).getShape(), element);
}

void widenDots(tile::KernelOp kernel) {
  kernel.walk([](tile::DotOp dot) {
    OpBuilder builder(dot);
    Location loc = dot.getLoc();
    Value a = dot.getLhs(), b = dot.getRhs();
    for (OpOperand *operand : {&dot.getLhsMutable(), &dot.getRhsMutable()})
      if (isFloat8(getElementTypeOrSelf(operand->get().getType())))
        operand->set(
            arith::ExtFOp::create(builder, loc, withElement(operand->get(), builder.getBF16Type()), operand->get()));
    if (!getElementTypeOrSelf(a.getType()).isInteger(8))
      return;
    Type f64 = builder.getF64Type();
    auto toF64 = [&](Value tile) -> Value {
      return arith::SIToFPOp::create(builder, loc, withElement(tile, f64), tile);
    };
    Value c = dot.getAccumulator(), wide = toF64(c);
    Value product =
        tile::DotOp::create(builder, loc, wide.getType(), toF64(a), toF64(b), wide, tile::DotPrecision::IEEE);
    Value whole = arith::FPToSIOp::create(builder, loc, withElement(c, builder.getI64Type()), product);
    dot.replaceAllUsesWith(arith::TruncIOp::create(builder, loc, c.getType(), whole).getResult());
    dot.erase();
  });
}

} // namespace kpkg::lower::cpu
