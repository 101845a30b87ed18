// Implements the view type: text form, verification, and the types of parts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/ElementBytes.h"
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

// isElementType.
namespace kpkg::tile {
#include "dialect/tile/ir/TileConstraints.cpp.inc"
}

int64_t kpkg::tile::elementBytes(Type element, int64_t count) {
  int64_t bits = element.isIndex() ? 64 : element.isInteger(1) ? 8 : element.getIntOrFloatBitWidth();
  return bits % 8 == 0 ? count * (bits / 8) : int64_t(llvm::divideCeil(count * bits, 8));
}

bool kpkg::tile::isTileShape(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() == 0 || !tensor.hasStaticShape())
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
  ViewFacts facts;
  if (parser.parseLess() || parser.parseDimensionList(dimensions, /*allowDynamic=*/false))
    return {};
  if (dimensions.size() != 1) {
    parser.emitError(location, "expected the rank of the view, as in `2xf32`");
    return {};
  }
  if (parser.parseType(elementType))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef word;
    if (parser.parseKeyword(&word))
      return {};
    if (word == "mut") {
      isMut = true;
      continue;
    }
    int64_t *fact = word == "unit"        ? &facts.unit
                    : word == "align"     ? &facts.align
                    : word == "divisible" ? &facts.divisible
                    : word == "index"     ? &facts.index
                    : word == "outer"     ? &facts.outer
                                          : nullptr;
    if (!fact) {
      parser.emitError(parser.getCurrentLocation(), "a view has no fact '") << word << "'";
      return {};
    }
    if (parser.parseEqual() || parser.parseInteger(*fact))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ViewType>(location, parser.getContext(), dimensions[0], elementType, isMut, facts);
}

void ViewType::print(AsmPrinter &printer) const {
  const ViewFacts facts = getFacts(), none;
  printer << "<" << getRank() << "x" << getElementType();
  if (getIsMut())
    printer << ", mut";
  if (facts.unit != none.unit)
    printer << ", unit = " << facts.unit;
  if (facts.align != none.align)
    printer << ", align = " << facts.align;
  if (facts.divisible != none.divisible)
    printer << ", divisible = " << facts.divisible;
  if (facts.index != none.index)
    printer << ", index = " << facts.index;
  if (facts.outer != none.outer)
    printer << ", outer = " << facts.outer;
  printer << ">";
}

LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rank, Type elementType, bool isMut,
                               ViewFacts facts) {
  if (rank < 0 || rank > 16)
    return emitError() << "a view has rank 0 to 16, not " << rank;
  if (!isElementType(elementType))
    return emitError() << "a view cannot hold " << elementType;
  if (facts.unit < -1 || facts.unit >= rank)
    return emitError() << "unit dimension " << facts.unit << " is not a dimension of a view of rank " << rank;
  if (facts.align < 1 || !llvm::isPowerOf2_64(facts.align))
    return emitError() << "alignment " << facts.align << " is not a power of two";
  if (facts.divisible < 1 || !llvm::isPowerOf2_64(facts.divisible))
    return emitError() << "divisor " << facts.divisible << " is not a power of two";
  if (facts.index != 32 && facts.index != 64)
    return emitError() << "indices have 32 or 64 bits, not " << facts.index;
  if (facts.outer < 0 || facts.outer > rank || (facts.outer > 0 && facts.index != 32))
    return emitError() << facts.outer << " outer dimensions are not left out of the offsets of a view of rank " << rank
                       << " with indices of " << facts.index << " bits";
  return success();
}

bool ViewType::implies(ViewType weaker) const {
  if (withFacts({}) != weaker.withFacts({}))
    return false;
  const ViewFacts facts = getFacts(), asked = weaker.getFacts();
  return (asked.unit == -1 || asked.unit == facts.unit) && asked.align <= facts.align &&
         asked.divisible <= facts.divisible && asked.index >= facts.index &&
         (asked.index != 32 || asked.outer >= facts.outer);
}

int64_t ViewType::getElementBytes() const { return elementBytes(getElementType()); }

ViewType ViewType::drop(ArrayRef<int64_t> dims) const {
  ViewFacts facts = getFacts();
  // The part begins at a multiple of the dropped strides. The stride of the unit dimension allows any number of
  // elements.
  int64_t step = facts.divisible * getElementBytes();
  facts.outer -= llvm::count_if(dims, [&](int64_t dim) { return dim < getFacts().outer; });
  for (int64_t dim : dims) {
    if (dim == getUnit()) {
      facts.unit = -1;
      step = getElementBytes();
    } else if (dim < getUnit()) {
      --facts.unit;
    }
  }
  if (!dims.empty())
    facts.align = std::min(facts.align, step & -step);
  return get(getRank() - dims.size(), getElementType(), getIsMut(), facts);
}

ViewType ViewType::slice(int64_t dim) const {
  ViewFacts facts = getFacts();
  // As in drop(): along the unit dimension the part may begin at any element.
  int64_t step = (dim == getUnit() ? 1 : facts.divisible) * getElementBytes();
  facts.align = std::min(facts.align, step & -step);
  if (dim == getUnit())
    facts.divisible = 1;
  return withFacts(facts);
}
