// The view type: text form, checks, and what indexing does to it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kpkg::tile;

#define GET_TYPEDEF_CLASSES
#include "dialect/tile/ir/TileTypes.cpp.inc"

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/tile/ir/TileTypes.cpp.inc"
      >();
}

bool kpkg::tile::isElementType(Type type) {
  if (type.isIndex() || type.isF64() || type.isF32() || type.isF16() || type.isBF16())
    return true;
  if (isa<Float8E4M3FNType, Float8E5M2Type>(type))
    return true;
  for (unsigned width : {1, 8, 16, 32, 64})
    if (type.isSignlessInteger(width))
      return true;
  return false;
}

bool kpkg::tile::isTileShape(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() == 0 || tensor.getEncoding() || !tensor.hasStaticShape())
    return false;
  int64_t count = 1;
  for (int64_t extent : tensor.getShape()) {
    if (extent <= 0 || extent > kMaxTileElements || (count *= extent) > kMaxTileElements)
      return false;
  }
  return true;
}

Type ViewType::parse(AsmParser &parser) {
  SmallVector<int64_t> dimensions;
  SMLoc location = parser.getCurrentLocation();
  Type elementType;
  bool isMut = false;
  int64_t unit = -1;
  if (parser.parseLess() || parser.parseDimensionList(dimensions, /*allowDynamic=*/false))
    return {};
  if (dimensions.size() != 1) {
    parser.emitError(location, "expected the rank of the view, as in `2xf32`");
    return {};
  }
  if (parser.parseType(elementType))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("mut")))
      isMut = true;
    else if (parser.parseKeyword("unit") || parser.parseEqual() || parser.parseInteger(unit))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ViewType>(location, parser.getContext(), dimensions[0], elementType, isMut, unit);
}

void ViewType::print(AsmPrinter &printer) const {
  printer << "<" << getRank() << "x" << getElementType();
  if (getIsMut())
    printer << ", mut";
  if (getUnit() != -1)
    printer << ", unit = " << getUnit();
  printer << ">";
}

LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rank, Type elementType, bool isMut,
                               int64_t unit) {
  if (rank < 0 || rank > 16)
    return emitError() << "a view has rank 0 to 16, not " << rank;
  if (!isElementType(elementType))
    return emitError() << "a view cannot hold " << elementType;
  if (unit < -1 || unit >= rank)
    return emitError() << "unit dimension " << unit << " is not a dimension of a view of rank " << rank;
  return success();
}

ViewType ViewType::drop(ArrayRef<int64_t> dims) const {
  int64_t unit = getUnit();
  for (int64_t dim : dims) {
    if (dim == getUnit())
      unit = -1;
    else if (dim < getUnit())
      --unit;
  }
  return get(getRank() - dims.size(), getElementType(), getIsMut(), unit);
}
