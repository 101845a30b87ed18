// Declares the ops and attributes of kernels at thread level.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {

/// Belongs to ops of kernels at thread level.
template <typename ConcreteType> struct OfThreads : mlir::OpTrait::TraitBase<ConcreteType, OfThreads> {};

} // namespace kpkg::tile

#include "dialect/tile/ir/ThreadEnums.h.inc"
#define GET_OP_CLASSES
#include "dialect/tile/ir/ThreadOps.h.inc"

namespace kpkg::tile {

/// Makes the body of `kernel` the code of one thread. A block has `extents` threads along x, y and z, and `cluster`
/// blocks form a cluster.
void setThreads(KernelOp kernel, llvm::ArrayRef<int64_t> extents, int64_t cluster);
/// Returns whether the body of `kernel` is the code of one thread.
bool isOfThreads(KernelOp kernel);
/// Returns the threads of a block of a kernel at thread level.
int64_t threadCount(KernelOp kernel);
/// Returns the blocks of a cluster; 1 without clusters.
int64_t clusterSize(KernelOp kernel);

/// Returns whether an op belongs to kernels at thread level only.
inline bool isThreadOp(mlir::Operation *op) { return op->hasTrait<OfThreads>(); }
/// Verifies that a kernel has ops of its level only, and that its threads make sense.
mlir::LogicalResult verifyLevel(KernelOp kernel);

} // namespace kpkg::tile
