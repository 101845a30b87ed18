// Reports tiles of which a thread would hold too many elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/HeldElements.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace kpkg::kgpu {

LogicalResult checkHeld(Value value, const layout::Layout &layout) {
  if (layout.registers() <= kMostHeld)
    return success();
  auto type = cast<RankedTensorType>(value.getType());
  std::string shape =
      llvm::join(llvm::map_range(type.getShape(), [](int64_t extent) { return std::to_string(extent); }), "x");
  InFlightDiagnostic error = emitError(value.getLoc())
                             << "a thread would hold " << layout.registers() << " elements of a tile of " << shape
                             << ", at most " << kMostHeld << " are possible";
  tile::KernelOp kernel = value.getParentRegion()->getParentOfType<tile::KernelOp>();
  unsigned warps = getLaunch(kernel).warps();
  unsigned needed = warps * llvm::PowerOf2Ceil(llvm::divideCeil(layout.registers(), kMostHeld));
  if (needed * targetOf(kernel).warpSize <= targetOf(kernel).maxThreads)
    return error << "; @schedule(warps=" << needed << ") spreads it over more threads";
  return error << "; take a smaller tile";
}

} // namespace kpkg::kgpu
