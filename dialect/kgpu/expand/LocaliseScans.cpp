// Converts scans along an axis that several warps share, so that each warp scans whole axes by itself.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %s = tile.scan (%v : tensor<4x256xf32, #wide>) axis 1 {...}
// After:  %w = kgpu.cvt_layout %v : tensor<4x256xf32, #wide> -> tensor<4x256xf32, #warp>
//         %t = tile.scan (%w : tensor<4x256xf32, #warp>) axis 1 {...}
//         %s = kgpu.cvt_layout %t : tensor<4x256xf32, #warp> -> tensor<4x256xf32, #wide>
//
// On entry: every tile has a layout.
// On exit: the axis of every tile.scan lies on registers and lanes. Warps share the other dimensions. If these are too
// small, warps repeat each other's work, which costs less than a second exchange.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/HeldElements.h"
#include "dialect/kgpu/ir/ConvertLayout.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/layout/Builders.h"

using namespace mlir;

namespace kpkg::kgpu {

#define GEN_PASS_DEF_KGPULOCALISESCANS
#include "dialect/kgpu/Passes.h.inc"

namespace {

using layout::Layout;
using layout::Part;

constexpr Optimisation kScans{"kgpu-localise-scans", "scan within warps"};

LogicalResult localise(tile::ScanOp op) {
  const Layout wide = layoutOf(op.getInputs().front());
  auto type = cast<RankedTensorType>(op.getInputs().front().getType());
  if (wide.bitsAlong(Part::Block, op.getAxis()))
    return emitError(op.getLoc()) << "a scan along " << type.getDimSize(op.getAxis())
                                  << " elements needs a length that is a power of two here: it is spread over "
                                  << wide.blocks() << " blocks of a cluster";
  // Nothing moves elements from one CTA of a cluster to another, so that each keeps its rows if they divide evenly.
  unsigned bytes = elementBytes(type.getElementType());
  layout::Threads threads = {wide.lanes(), wide.warps(), wide.blocks()};
  Layout local = layout::withinWarp(type.getShape(), bytes, wide, op.getAxis())
                     .value_or(layout::withinWarp(type.getShape(), bytes, threads, op.getAxis()));
  if (failed(checkHeld(op.getOutputs().front(), local)))
    return failure();
  remarkApplied(op, kScans, "warps exchange elements once, so that each has whole rows of the scan");
  for (OpOperand &input : op->getOpOperands())
    convertOperand(input, local);
  for (OpResult output : llvm::reverse(op->getResults())) // each conversion directly follows the scan
    giveLayout(output, local);
  return success();
}

struct LocaliseScans final : impl::KgpuLocaliseScansBase<LocaliseScans> {
  void runOnOperation() override {
    for (auto op : opsIn<tile::ScanOp>(getOperation()))
      if (!isWithinWarp(layoutOf(op.getInputs().front()), op.getAxis()) && failed(localise(op)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace kpkg::kgpu
