// Emits remarks of passes for kernel authors: optimisations that were applied or refused, and the reason.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;

namespace kpkg::kgpu {
static StringRef kernelAround(Operation *op) {
  auto kernel = isa<tile::KernelOp>(op) ? cast<tile::KernelOp>(op) : op->getParentOfType<tile::KernelOp>();
  return kernel ? kernel.getSymName() : StringRef();
}

RemarkPlace::RemarkPlace(Operation *op) : location(op->getLoc()), kernel(kernelAround(op)) {}

static remark::RemarkOpts optionsFor(const RemarkPlace &place, const Optimisation &optimisation) {
  return remark::RemarkOpts::name(optimisation.name).category(optimisation.pass).function(place.kernel);
}

std::string dtypeName(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return "int" + std::to_string(integer.getWidth());
  // MLIR says f32, bf16 and f8E4M3FN.
  std::string text = llvm::StringRef(debugString(type)).lower();
  size_t digits = text.find('f') + 1, format = text.find('e', digits);
  std::string name = text.substr(0, digits) + "loat" + text.substr(digits, format - digits);
  return format == std::string::npos ? name : name + "_" + text.substr(format);
}

void remarkApplied(const RemarkPlace &place, const Optimisation &optimisation, const llvm::Twine &how) {
  if (remark::detail::InFlightRemark remark = remark::passed(place.location, optionsFor(place, optimisation)))
    remark << how.str();
}

void remarkRefused(const RemarkPlace &place, const Optimisation &optimisation, const llvm::Twine &why) {
  if (remark::detail::InFlightRemark remark = remark::missed(place.location, optionsFor(place, optimisation)))
    remark << remark::detail::Remark::Arg("Reason", why.str());
}

bool remarkOn(const RemarkPlace &place, const Optimisation &optimisation, const WhyNot &why, const llvm::Twine &how) {
  why ? remarkRefused(place, optimisation, *why) : remarkApplied(place, optimisation, how);
  return !why;
}
} // namespace kpkg::kgpu
