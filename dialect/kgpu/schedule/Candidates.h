// The launches that suit a kernel on a chip, the best guess first.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Never empty. Later ones ask for less: fewer CTAs on an SM, or fewer elements per thread. Who compiles takes the
/// first that ptxas compiles without spilling registers. Deterministic; looks at the kernel at tile level.
llvm::SmallVector<Launch> candidates(tile::KernelOp kernel, const TargetModel &target);

/// Whether warpgroups multiply 8-bit elements on this chip, but not those of this kernel, whose operands are contiguous
/// along other dimensions.
bool multipliesBytesByWarps(tile::KernelOp kernel, const TargetModel &target);

/// Whether accumulators of products of single warps take a third of a multiprocessor's registers or more: operands,
/// which go through registers too, then find too few. Products of warpgroups read operands from shared memory: none of
/// the kernel's launches has those.
bool leavesFewRegisters(tile::KernelOp kernel, const TargetModel &target);
} // namespace kpkg::kgpu
