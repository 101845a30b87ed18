// Lists the launch configurations that suit a kernel on a chip, the best guess first.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Returns at least one launch. Later launches require less: fewer CTAs on an SM, or fewer elements per thread. The
/// caller takes the first one that ptxas compiles without spilling registers. The result is deterministic. The kernel
/// must be at tile level.
llvm::SmallVector<Launch> candidates(tile::KernelOp kernel, const TargetModel &target);

/// Returns the launch of a kernel without products whose code is shortest, for builds whose time matters more than the
/// code's. The code of a thread grows with its elements, so that there are more threads than candidates() has. Returns
/// nothing for kernels with products, of threads, and where candidates() begins with such a launch.
std::optional<Launch> shortestLaunch(tile::KernelOp kernel, const TargetModel &target);

/// Returns whether this chip's wgmma multiplies 8-bit elements, but not those of this kernel, because its operands are
/// contiguous along other dimensions.
bool multipliesBytesByWarps(tile::KernelOp kernel, const TargetModel &target);

/// Returns whether accumulators of mma.sync take a third of a multiprocessor's registers or more. Operands, which also
/// go through registers, then find too few. The result is false if a launch of the kernel uses wgmma, which reads
/// operands from shared memory.
bool leavesFewRegisters(tile::KernelOp kernel, const TargetModel &target);
} // namespace kpkg::kgpu
