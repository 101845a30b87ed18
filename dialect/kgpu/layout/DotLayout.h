// How the accumulator of a matrix product lies in the registers of threads that compute it by multiply-adds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Builders.h"

namespace kpkg::kgpu {
/// Blocks of 4 rows by 16 bytes of columns in a thread, so that a row of one operand and a column of the other are read
/// from shared memory as vectors and used several times; 8 lanes along columns, the rest along rows. Rank 2, or 3 with a
/// batch, which only repeats.
layout::Layout dotAccumulator(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, layout::Threads threads);
} // namespace kpkg::kgpu
