// How many bytes threads read and write at once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {

/// Of an access: bytes of an element, and of what a thread has of a row at once.
struct Coalescing {
  unsigned elementBytes = 4;
  unsigned vectorBytes = 4;
};

/// Of the access that decides how threads lie along rows: the one that moves most bytes, wide elements first.
Coalescing measureAccesses(tile::KernelOp kernel);

/// A smaller vector, of at least 8 bytes, where a tile has too few elements for whole ones in all threads: else several
/// would do the same.
unsigned vectorForAllThreads(unsigned vector, unsigned elementBytes, llvm::ArrayRef<int64_t> shape,
                             const Launch &launch);

constexpr unsigned kWholeVector = 16;

/// Bytes of a row that a gather may read at once; 0 where it reads no rows, or facts promise nothing.
unsigned rowVectorBytes(tile::GatherOp gather);

} // namespace kpkg::kgpu
