// The phases of the GPU pipelines: four kinds of kernels, and the phases that they share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/Pass/PassManager.h"

namespace kpkg {

/// Each kind of kernel has a pipeline of its own.
enum class KernelKind {
  Rows,       ///< no matrix product
  Mma,        ///< matrix products by mma.sync or FMAs: every warp loads and computes
  Threads,    ///< at thread level: the author wrote the code of one thread
  Warpgroups, ///< matrix products by wgmma: a producer warp copies, consumer warpgroups compute
};

/// Returns the kind of a configured kernel.
KernelKind kindOf(tile::KernelOp kernel);

/// Adds the passes between kgpu-configure and the per-thread lowering, for one kind of kernel. A pass that a field of
/// the launch asks for is added only if the field is set.
void addRowPasses(mlir::OpPassManager &passes, const kgpu::Launch &launch);
void addMmaPasses(mlir::OpPassManager &passes, const kgpu::Launch &launch);
void addWarpgroupPasses(mlir::OpPassManager &passes, const kgpu::Launch &launch);
void addThreadPasses(mlir::OpPassManager &passes);

/// Adds the shared beginning of the phase "laid out": a layout for every tile.
void addLayouts(mlir::OpPassManager &passes);
/// Adds the shared end of the phase "expanded": scans, reductions and conversions become ops of warps.
void addExpansion(mlir::OpPassManager &passes);
/// Adds the phase "allocated": offsets of buffers, barriers, and the last verifier.
void addAllocation(mlir::OpPassManager &passes);

} // namespace kpkg
