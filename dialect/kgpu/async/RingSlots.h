// How many slots the rings of a kernel get.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/async/StreamedDots.h"

namespace kpkg::kgpu {

/// What one slot of a ring takes, and how many loops are around what fills it.
struct RingDemand {
  int64_t bytes;
  unsigned depth;
};

struct RingSlots {
  llvm::SmallVector<int64_t> ofRings;
  int64_t ofShared; ///< of each tile that warpgroups share
};

/// As many slots for each ring as shared memory holds beside what the kernel has taken. `sharedBytes` are those of one
/// slot of every tile that warpgroups share. What is copied less often than others gets two slots where enough are
/// left for those, or as many as with one, so that copies go on into the next tile while this one is computed; else
/// one. An error at the kernel where rings of two slots do not fit.
mlir::FailureOr<RingSlots> chooseSlots(tile::KernelOp kernel, llvm::ArrayRef<StreamedDot> products,
                                       llvm::ArrayRef<RingDemand> rings, int64_t sharedBytes);

} // namespace kpkg::kgpu
