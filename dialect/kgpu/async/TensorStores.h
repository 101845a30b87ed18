// Which tiles go to memory by tensor maps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Whether so many warpgroups can add the tile by a tensor map: the result of a product, to a view that such a map can
/// describe.
bool isAddedByMap(tile::AddStoreOp store, unsigned consumers);
} // namespace kpkg::kgpu
