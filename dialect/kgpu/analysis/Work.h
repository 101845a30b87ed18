// Measures the work of a kernel: its widest tile, its memory traffic and its registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
struct Work {
  int64_t widestBytes = 0;      ///< of the widest tile that is loaded or stored
  int64_t widestElements = 0;   ///< elements of that tile
  int64_t computedElements = 0; ///< of the largest tile that is computed
  int64_t inputBytes = 0;       ///< of loads that differ between kernel blocks, in the block of ops that loads most
  int64_t rowBytes = 0;         ///< the same without gathers
  int64_t repeatedBytes = 0;    ///< of wide loads that are the same in all kernel blocks
  int64_t liveRegisters =
      0;                   ///< 32-bit registers that all threads of a kernel block together need for tiles, at the peak
  int64_t dotElements = 0; ///< of the largest accumulator; 0 = no dot
  int64_t dotElementBytes = 0; ///< of that accumulator
  int64_t mmaElements = 0;     ///< of the largest accumulator of mma.sync; 0 = none
  int64_t mmaStageBytes = 0;   ///< of the operands of all such products in one loop
  bool reduces = false;        ///< a wide tile is reduced, so threads must communicate
  bool loops = false;          ///< has a loop around memory accesses
  bool writesRows = false;     ///< stores tiles as wide as its loads
  bool prints = false;         ///< prints messages to the host, which one CTA must do alone
  bool movesParts = false;     ///< moves elements between threads, maybe through the shared memory of one CTA
  /// Several kernel blocks may run on lanes of one warp: control flow is uniform and exchanges are shuffles only.
  bool packable = false;
  /// Loads that differ between kernel blocks are from views whose facts permit vectors of 16 bytes.
  bool isFetchable = true;
};

Work measure(tile::KernelOp kernel, const TargetModel &target);
} // namespace kpkg::kgpu
