// Generated definitions of the tile ops, and the parts of their text form that the generator cannot express.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace kpkg::tile;

/// One type for all index tiles; the mask has the same shape.
static ParseResult parseIndexTileType(OpAsmParser &parser, ArrayRef<OpAsmParser::UnresolvedOperand> indices,
                                      const std::optional<OpAsmParser::UnresolvedOperand> &mask,
                                      SmallVectorImpl<Type> &indexTypes, Type &maskType) {
  RankedTensorType type;
  if (parser.parseType(type))
    return failure();
  indexTypes.assign(indices.size(), type);
  if (mask)
    maskType = type.clone(parser.getBuilder().getI1Type());
  return success();
}

static void printIndexTileType(OpAsmPrinter &printer, Operation *, ValueRange indices, Value, TypeRange indexTypes,
                               Type) {
  printer << indexTypes.front();
}

/// Results have the types of the inputs, which are printed already.
static ParseResult parseSameTypes(OpAsmParser &, ArrayRef<Type> inputs, SmallVectorImpl<Type> &outputs) {
  outputs.assign(inputs.begin(), inputs.end());
  return success();
}
static void printSameTypes(OpAsmPrinter &, Operation *, TypeRange, TypeRange) {}

#define GET_OP_CLASSES
#include "dialect/tile/ir/TileOps.cpp.inc"
