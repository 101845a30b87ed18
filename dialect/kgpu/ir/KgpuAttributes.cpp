// Attributes of the kgpu dialect: text forms and checks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kpkg::kgpu;

#define GET_ATTRDEF_CLASSES
#include "dialect/kgpu/ir/KgpuAttributes.cpp.inc"

namespace {
/// Layouts are long and used often: they are printed once, as #layout, #layout1, ...
struct Aliases final : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (!isa<LayoutAttr>(attribute))
      return AliasResult::NoAlias;
    os << "layout";
    return AliasResult::FinalAlias;
  }
};
} // namespace

void KgpuDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/kgpu/ir/KgpuAttributes.cpp.inc"
      >();
  addInterfaces<Aliases>();
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  std::string text;
  SMLoc location;
  if (parser.parseLess() || parser.getCurrentLocation(&location) || parser.parseString(&text) || parser.parseGreater())
    return {};
  llvm::Expected<layout::Layout> layout = layout::Layout::parse(text);
  if (!layout) {
    parser.emitError(location) << llvm::toString(layout.takeError());
    return {};
  }
  return get(parser.getContext(), *layout);
}

void LayoutAttr::print(AsmPrinter &printer) const { printer << "<\"" << getLayout().str() << "\">"; }

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  if (!getLayout().covers(shape))
    return emitError() << "layout " << getLayout().str() << " does not cover the shape [" << shape << "]";
  return success();
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef chip) {
  if (findTarget(chip))
    return success();
  InFlightDiagnostic error = emitError() << "unknown chip '" << chip << "', known are";
  for (const TargetModel &target : allTargets())
    error << " " << target.chip;
  return error;
}

const TargetModel &TargetAttr::getModel() const { return *findTarget(getChip()); }
