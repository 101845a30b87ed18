// Densifies 2:4-sparse operands of matrix products that wgmma does not multiply.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.dot %v, %b, %c at %p : tensor<64x64xf16>, tensor<128x64xf16>, tensor<64x64xf32>, tensor<64x8xi16>
// After:  tile.dot %w, %b, %c : tensor<64x128xf16>, tensor<128x64xf16>, tensor<64x64xf32>
//
// On entry: a configured kernel without layouts.
// On exit: a tile.dot with positions is one of `streamedDots`, in a kernel with consumer warpgroups. Other sparse
// products are dense.
#include "dialect/tile/transforms/DensifyDots.h"
#include "dialect/kgpu/Passes.h"

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUDENSIFYDOTS
#include "dialect/kgpu/Passes.h.inc"

namespace {
struct DensifyDots final : impl::KgpuDensifyDotsBase<DensifyDots> {
  void runOnOperation() override {
    if (getLaunch(getOperation()).consumers == 0)
      tile::densifyDots(getOperation());
  }
};
} // namespace
} // namespace kpkg::kgpu
