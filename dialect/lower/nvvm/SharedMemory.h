// Tiles to and from shared memory, as vector accesses of each thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Shared.h"
#include "dialect/lower/nvvm/ThreadBits.h"

namespace kpkg::lower::nvvm {
/// Stores a tile's registers. `base` is an !llvm.ptr<3> aligned to the access's vector bytes. Threads in which
/// `predicate` (i1) is false store nothing; null = all store.
void storeShared(mlir::ImplicitLocOpBuilder &builder, const layout::SharedAccess &access, mlir::Value base,
                 const ThreadBits &thread, mlir::ValueRange registers, mlir::Value predicate = {});

/// Loads a tile of `element`s: its registers.
llvm::SmallVector<mlir::Value> loadShared(mlir::ImplicitLocOpBuilder &builder, const layout::SharedAccess &access,
                                          mlir::Value base, const ThreadBits &thread, mlir::Type element);

/// Whether the thread is the first of its replicas: all these bits of lane and warp are 0. Null when there are none.
mlir::Value isFirstReplica(mlir::ImplicitLocOpBuilder &builder, const ThreadBits &thread, unsigned laneMask,
                           unsigned warpMask);
} // namespace kpkg::lower::nvvm
