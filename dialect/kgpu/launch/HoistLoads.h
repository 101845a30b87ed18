// Moves loads up to the first load of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kpkg::kgpu {
/// Receives each load that is considered, and the reason if it is not moved.
using LoadReport = llvm::function_ref<void(tile::LoadOp, const WhyNot &)>;

/// Moves loads of the kernel's outermost block up to its first load, as far as their operands allow. Returns whether a
/// load has passed a synchronisation of threads. `report` receives all loads but the first.
bool hoistLoads(tile::KernelOp kernel, LoadReport report = [](tile::LoadOp, const WhyNot &) {});
} // namespace kpkg::kgpu
