// Tiles to and from shared memory, as vector accesses of each thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Shared.h"
#include "dialect/lower/nvvm/ThreadBits.h"
#include <map>

namespace kpkg::lower::nvvm {
/// The addresses of a thread's vectors. Offset bits that no thread bit reaches are added as constants, which the access
/// instruction takes for free; only the others need an XOR.
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
