// Text forms and verifiers of the kgpu dialect's types.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::kgpu;

#define GET_TYPEDEF_CLASSES
#include "dialect/kgpu/ir/KgpuTypes.cpp.inc"

void KgpuDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/kgpu/ir/KgpuTypes.cpp.inc"
      >();
}

Type SharedType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(elementType))
    return {};
  std::optional<layout::SharedLayout> memory;
  if (succeeded(parser.parseOptionalComma())) {
    std::string text;
    SMLoc where = parser.getCurrentLocation();
    if (parser.parseString(&text))
      return {};
    llvm::Expected<layout::SharedLayout> parsed = layout::SharedLayout::parse(text);
    if (!parsed) {
      parser.emitError(where) << llvm::toString(parsed.takeError());
      return {};
    }
    memory = *parsed;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<SharedType>(location, parser.getContext(), shape, elementType, memory);
}

void SharedType::print(AsmPrinter &printer) const {
  printer << "<";
  for (int64_t extent : getShape())
    printer << extent << "x";
  printer << getElementType();
  if (getMemory())
    printer << ", \"" << getMemory()->str() << "\"";
  printer << ">";
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape,
                                 Type elementType, std::optional<layout::SharedLayout> memory) {
  if (!tile::isElementType(elementType))
    return emitError() << "shared memory cannot hold " << elementType;
  if (shape.empty() || llvm::any_of(shape, [](int64_t extent) { return extent < 1; }))
    return emitError() << "a buffer has at least one dimension and no extent 0";
  if (!memory)
    return success();
  if (memory->elementBytes() != elementBytes(elementType))
    return emitError() << "elements of " << memory->elementBytes() << " bytes cannot hold " << elementType;
  auto covered = memory->shape();
  if (covered.size() != shape.size() ||
      llvm::any_of(llvm::zip(shape, covered), [](auto pair) { return std::get<0>(pair) > std::get<1>(pair); }))
    return emitError() << "memory " << memory->str() << " does not cover the shape [" << shape << "]";
  return success();
}

layout::SharedLayout SharedType::getPlacement() const {
  return getMemory() ? *getMemory() : layout::SharedLayout::rowMajor(getShape(), getElementBytes());
}

int64_t SharedType::getElementBytes() const { return elementBytes(getElementType()); }

int64_t SharedType::getAlignment() const { return std::max<int64_t>(16, getPlacement().alignment()); }

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t slots) {
  if (slots < 1)
    return emitError() << "a ring has at least one slot";
  return success();
}
