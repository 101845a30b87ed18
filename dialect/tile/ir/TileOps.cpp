// Includes the generated definitions of the tile ops, and implements custom directives of their text forms.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace kpkg::tile;

/// Parses one type for all index tiles. The mask has the same shape.
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

/// Parses the type for index tiles and the mask. Elements are compared with values of the type of the new ones.
static ParseResult parseUpdateTypes(OpAsmParser &parser, ArrayRef<OpAsmParser::UnresolvedOperand> indices,
                                    const std::optional<OpAsmParser::UnresolvedOperand> &mask,
                                    const std::optional<OpAsmParser::UnresolvedOperand> &expected, Type valueType,
                                    SmallVectorImpl<Type> &indexTypes, Type &maskType, Type &expectedType) {
  if (expected)
    expectedType = valueType;
  return parseIndexTileType(parser, indices, mask, indexTypes, maskType);
}

static void printUpdateTypes(OpAsmPrinter &printer, Operation *, ValueRange, Value, Value, Type, TypeRange indexTypes,
                             Type, Type) {
  printer << indexTypes.front();
}

/// Infers the types of the results from the inputs, whose types are printed already.
static ParseResult parseSameTypes(OpAsmParser &, ArrayRef<Type> inputs, SmallVectorImpl<Type> &outputs) {
  outputs.assign(inputs.begin(), inputs.end());
  return success();
}
static void printSameTypes(OpAsmPrinter &, Operation *, TypeRange, TypeRange) {}

#define GET_OP_CLASSES
#include "dialect/tile/ir/TileOps.cpp.inc"
