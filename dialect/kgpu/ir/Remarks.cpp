// Emits remarks of passes for kernel authors: optimisations that were applied or refused, and the reason.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/Remarks.h"

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
  if (isa<Float8E4M3FNType>(type))
    return "float8_e4m3fn";
  if (isa<Float8E5M2Type>(type))
    return "float8_e5m2";
  return (type.isBF16() ? "bfloat" : "float") + std::to_string(type.getIntOrFloatBitWidth());
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
