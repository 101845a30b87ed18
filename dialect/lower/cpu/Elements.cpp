// Implements the types of elements in registers and in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/Elements.h"
#include "dialect/lower/math/NarrowFloats.h"
#include "dialect/tile/ir/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace kpkg::lower::cpu {

Type registerType(Type element) {
  return isNarrowFloat(element) ? IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth()) : element;
}

Type memoryType(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  if (element.isIndex())
    return IntegerType::get(element.getContext(), 64);
  return registerType(element);
}

int64_t memoryBytes(Type element) { return tile::elementBytes(element); }

bool isElementwise(Operation *op) {
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) && !isa<arith::ConstantOp>(op) &&
         op->getNumResults() == 1;
}

} // namespace kpkg::lower::cpu
