// The attributes of the tile dialect: text form.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kpkg::tile;

#define GET_ATTRDEF_CLASSES
#include "dialect/tile/ir/TileAttributes.cpp.inc"

void TileDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/tile/ir/TileAttributes.cpp.inc"
      >();
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  Schedule hints;
  auto parseHint = [&]() -> ParseResult {
    StringRef name;
    SMLoc location = parser.getCurrentLocation();
    int64_t value = 0;
    if (parser.parseKeyword(&name) || parser.parseEqual() || parser.parseInteger(value))
      return failure();
    const HintRecord *record = findHint(name);
    if (!record)
      return parser.emitError(location) << "unknown hint '" << name << "'";
    if (value == 0 || !isValueOf(*record, value))
      return parser.emitError(location) << "hint '" << name << "' cannot be " << value;
    if (hints[record->hint] != 0)
      return parser.emitError(location) << "hint '" << name << "' is given twice";
    hints.set(record->hint, value);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseHint))
    return {};
  return get(parser.getContext(), hints);
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::ListSeparator separator;
  for (const HintRecord &record : kHints)
    if (uint32_t value = getHints()[record.hint])
      printer << StringRef(separator) << record.name << " = " << value;
  printer << ">";
}
