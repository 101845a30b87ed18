// Chooses the widths of vectorised memory accesses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {

/// The bytes of an element and of a thread's vector in a row.
struct Coalescing {
  unsigned elementBytes = 4;
  unsigned vectorBytes = 4;
};

/// Returns the widths of the access that determines the coalesced layout: the one that moves most bytes. Of equals,
/// the one with wider elements counts.
Coalescing measureAccesses(tile::KernelOp kernel);

/// Returns a smaller vector, of at least 8 bytes, if the tile has too few whole vectors for all threads. Otherwise
/// several threads would do the same work.
unsigned vectorForAllThreads(unsigned vector, unsigned elementBytes, llvm::ArrayRef<int64_t> shape,
                             const Launch &launch);

constexpr unsigned kWholeVector = 16;

/// Returns how many bytes of a row a gather may read at once. Returns 0 if it reads no rows, or facts permit no
/// vectors.
unsigned rowVectorBytes(tile::GatherOp gather);

/// Returns how many elements along the dimension of stride 1 one access of at most 16 bytes may have, as far as facts
/// tell. The view must have such a dimension.
int64_t mostTogether(tile::ViewType view);
/// Returns the same for an access that begins at these offsets.
int64_t mostTogether(tile::ViewType view, mlir::ValueRange offsets);
/// Returns whether a thread's vectors of `vectorBytes` along `dim` are contiguous in the buffer, with the same
/// elements. A layout may make other elements of a thread contiguous there.
bool keepsVectors(const layout::Layout &layout, const layout::SharedLayout &memory, unsigned dim, unsigned vectorBytes);
} // namespace kpkg::kgpu
