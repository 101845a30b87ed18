// Estimates the peak throughput of a multiprocessor per cycle, to compare launches of one kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
struct Throughput {
  double flops = 0; ///< of the kernel's products, else of its other arithmetic
  double alone = 0; ///< the same for a multiprocessor that holds a single CTA
  double bytes = 0; ///< that reach a multiprocessor from the L2 cache
};

/// Returns the throughput of `kernel`, at tile level, with this launch on this chip.
Throughput throughput(tile::KernelOp kernel, const TargetModel &target, const Launch &launch);
} // namespace kpkg::kgpu
