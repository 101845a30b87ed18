// Emits vector accesses of each thread to tiles in shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Shared.h"
#include "dialect/lower/nvvm/ThreadBits.h"
#include <map>

namespace kpkg::lower::nvvm {
/// Computes the addresses of a thread's vectors. Offset bits that no thread bit affects are added as constants, as the
/// immediate operand of the access instruction. Only other bits need an XOR.
class SharedAddresses {
public:
  SharedAddresses(mlir::ImplicitLocOpBuilder &builder, const layout::SharedAccess &access, mlir::Value base,
                  const ThreadBits &thread);
  mlir::Value of(const layout::SharedAccess::Vector &vector);

private:
  mlir::ImplicitLocOpBuilder &builder;
  mlir::Value base, threadOffset;
  uint32_t reached = 0;
  std::map<uint32_t, mlir::Value> starts;
};

/// Stores a tile's registers. `base` is an !llvm.ptr<3> aligned to the access's vector bytes. Threads in which
/// `predicate` (i1) is false store nothing. A null predicate means that all threads store.
void storeShared(mlir::ImplicitLocOpBuilder &builder, const layout::SharedAccess &access, mlir::Value base,
                 const ThreadBits &thread, mlir::ValueRange registers, mlir::Value predicate = {});

/// Loads the registers of a tile of `element`s.
llvm::SmallVector<mlir::Value> loadShared(mlir::ImplicitLocOpBuilder &builder, const layout::SharedAccess &access,
                                          mlir::Value base, const ThreadBits &thread, mlir::Type element);

/// Returns whether the thread is the first of its replicas: all these lane and warp bits are 0. Null when there are
/// none.
mlir::Value isFirstReplica(mlir::ImplicitLocOpBuilder &builder, const ThreadBits &thread, unsigned laneMask,
                           unsigned warpMask);
} // namespace kpkg::lower::nvvm
