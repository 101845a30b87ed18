// Text forms and verifiers of the kgpu dialect's attributes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace kpkg::kgpu;

#define GET_ATTRDEF_CLASSES
#include "dialect/kgpu/ir/KgpuAttributes.cpp.inc"

namespace {
/// Prints layouts once, as #layout, #layout1, ..., because they are long and used often.
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
    error << " " << llvm::StringRef(target.name);
  return error;
}

const TargetModel &TargetAttr::getModel() const { return *findTarget(getChip()); }

LogicalResult WindowAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> counts,
                                 ArrayRef<int64_t> strides, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps,
                                 ArrayRef<int64_t> taps) {
  if (counts.empty() || counts.size() > 3 || strides.size() != counts.size() || starts.size() != counts.size() ||
      steps.size() != counts.size() || taps.size() != 2 * counts.size())
    return emitError() << "a window has counts, strides, starts, steps and taps for 1 to 3 extents";
  return success();
}

LogicalResult TensorMapAttr::verify(function_ref<InFlightDiagnostic()> emitError, unsigned, ArrayRef<int64_t> box,
                                    unsigned swizzle, WindowAttr window) {
  if (window && (box.size() != window.getCounts().size() + 2 ||
                 !llvm::all_of(box.drop_front().drop_back(), [](int64_t extent) { return extent == 1; })))
    return emitError() << "a tensor map of a window has a box of pixels and channels with 1 for each of "
                       << window.getCounts().size() << " extents";
  if (box.empty() || box.size() > 5)
    return emitError() << "a tensor map has 1 to 5 dimensions, not " << box.size();
  for (int64_t extent : box)
    if (extent < 1 || extent > 256)
      return emitError() << "box of a tensor map has extent " << extent << ", which is not in 1 to 256";
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return emitError() << "swizzle of a tensor map is 0, 32, 64 or 128 bytes, not " << swizzle;
  return success();
}

int64_t TensorMapAttr::bytes(int64_t elementBytes) const {
  return std::accumulate(getBox().begin(), getBox().end(), elementBytes, std::multiplies<>());
}

SmallVector<unsigned> TensorMapAttr::order(unsigned unit) const {
  SmallVector<unsigned> dims = {unit};
  for (unsigned dim = getBox().size(); dim-- > 0;)
    if (dim != unit)
      dims.push_back(dim);
  return dims;
}
