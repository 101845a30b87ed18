// Chooses how many slots the ring buffers of a kernel get.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/analysis/StreamedDots.h"

namespace kpkg::kgpu {

/// The bytes of one slot of a ring, and the depth of the loop nest around the copies that fill it.
struct RingDemand {
  int64_t bytes;
  unsigned depth;
};

struct RingSlots {
  llvm::SmallVector<int64_t> ofRings;
  int64_t ofShared; ///< of each tile that warpgroups share
};

/// Chooses as many slots for each ring as fit in the shared memory that is left. `sharedBytes` is the size of one slot
/// of every tile that warpgroups share. Rings that are filled in the innermost loops get all of the room.
///
/// A ring that is filled less often gets two slots if the others still have enough, or no fewer than beside one slot.
/// Copies for the next tile can then start while this one is computed. Else it gets one slot. Reports an error at the
/// kernel if rings of two slots do not fit.
mlir::FailureOr<RingSlots> chooseSlots(tile::KernelOp kernel, llvm::ArrayRef<StreamedDot> products,
                                       llvm::ArrayRef<RingDemand> rings, int64_t sharedBytes);

} // namespace kpkg::kgpu
