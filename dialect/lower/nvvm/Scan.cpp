// Scans within a warp.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/Emitter.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

LogicalResult Emitter::emitScan(tile::ScanOp op) {
  const layout::Layout &layout = kgpu::layoutOf(op.getInputs().front());
  unsigned axis = op.getAxis();
  if (std::string why = whyNotAlong(layout, axis); !why.empty())
    return op.emitOpError() << "cannot be scanned: " << why;
  nvvm::Registers held;
  for (Value input : op.getInputs())
    held.emplace_back(registersOf(input));
  // Padding lies behind all elements, so it reaches none of them.
  bool inside = true;
  nvvm::Registers scanned =
      scanAlong(builder, layout, axis, held, place.bits(layout), [&](ValueRange left, ValueRange right) {
        FailureOr<SmallVector<Value>> combined = emitCombination(op.getBody().front(), left, right);
        inside &= succeeded(combined);
        return inside ? *combined : SmallVector<Value>(left);
      });
  for (auto [output, values] : llvm::zip_equal(op.getOutputs(), scanned))
    define(output, std::move(values));
  return success(inside);
}

} // namespace kpkg::lower::nvvm
