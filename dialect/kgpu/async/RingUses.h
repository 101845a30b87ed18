// Which use of a ring an op belongs to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// The number of the use of whose slot a buffer is: `kgpu.slot %all[%use mod slots]`. Null when it is none.
mlir::Value useOfSlot(mlir::Value buffer);
} // namespace kpkg::kgpu
