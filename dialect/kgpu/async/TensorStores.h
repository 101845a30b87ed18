// Decides which tiles are stored by tensor maps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Returns whether `consumers` warpgroups can add the tile to memory by a tensor map. It must be the result of a
/// product, and a tensor map must be able to describe the view.
bool isAddedByMap(tile::AddStoreOp store, unsigned consumers);
} // namespace kpkg::kgpu
