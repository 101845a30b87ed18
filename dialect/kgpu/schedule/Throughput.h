// What a multiprocessor does in a cycle at most, for estimates that compare launches of one kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
struct Throughput {
  double flops = 0; ///< of the kernel's products, else of its other arithmetic
  double alone = 0; ///< the same of a multiprocessor that holds a single CTA
  double bytes = 0; ///< that reach a multiprocessor from the cache which all share
};

/// Of `kernel`, at tile level, launched like this on this chip.
Throughput throughput(tile::KernelOp kernel, const TargetModel &target, const Launch &launch);
} // namespace kpkg::kgpu
