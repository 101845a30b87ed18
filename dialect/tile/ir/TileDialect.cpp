// Registers the tile dialect, and materialises the constants of its folds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/ThreadOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace kpkg::tile;

#include "dialect/tile/ir/TileDialect.cpp.inc"
#include "dialect/tile/ir/TileEnums.cpp.inc"

void TileDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialect/tile/ir/TileOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/tile/ir/ThreadOps.cpp.inc"
      >();
}

Operation *TileDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location location) {
  return arith::ConstantOp::materialize(builder, value, type, location);
}
