// Plans conversions between layouts: renamed registers, warp shuffles, or a round trip through shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"
#include "dialect/layout/Shared.h"
#include <variant>

namespace kpkg::layout {
/// Stands for "no register": the element is padding, and its value does not matter.
inline constexpr unsigned noRegister = ~0u;

/// A conversion within each thread. Register i of the result is register source[i] of the operand, or noRegister.
struct Rename {
  llvm::SmallVector<unsigned> source;
};

/// A conversion within each warp. Registers are handled in groups, one for each repeat, of `slots` slots each:
///   1. Slot s of a group takes operand register operands[group][s].
///   2. For each exchange in `before`: slots s and s ^ slotMask swap if (thread bits & threadMask) has odd parity.
///   3. In each round, all threads send slot `from` to slot `to` of a new set of slots. One shuffle of up to 4 bytes
///      carries all moves of the round. The sender is lane (laneMap applied to the receiver's thread bits) ^ laneXor.
///   4. The exchanges in `after` apply to the new slots.
///   5. Result register results[group][s] is new slot s.
///
/// Thread bits are lane, then warp, then block bits. The operand and the result may have different numbers of slots.
struct ShufflePlan {
  struct Exchange {
    unsigned slotMask;
    uint64_t threadMask;
  };
  struct Round {
    unsigned laneXor;
    /// Pairs (from, to) of slots.
    llvm::SmallVector<std::pair<unsigned, unsigned>, 4> moves;
  };
  unsigned laneBits = 0, threadBits = 0;
  unsigned operandSlots = 1, resultSlots = 1;
  /// The number of registers of the result. Registers that no group names are padding.
  unsigned resultRegisters = 0;
  /// A matrix of laneBits rows and threadBits columns.
  BitMatrix laneMap{0, 0};
  /// True when laneMap maps every thread to its own lane. A round is then a butterfly shuffle, or no shuffle if laneXor
  /// is 0.
  bool butterfly = false;
  llvm::SmallVector<Exchange> before, after;
  llvm::SmallVector<Round> rounds;
  /// Registers by group and slot; noRegister for a slot without a register.
  llvm::SmallVector<llvm::SmallVector<unsigned, 8>> operands, results;
};

/// A conversion through shared memory: threads whose free bits are 0 store, a barrier follows, and all threads load.
struct SharedPlan {
  SharedLayout memory;
  SharedAccess store, load;
  /// A thread stores only when the lane and warp bits in these masks are all 0.
  unsigned storeLaneMask = 0, storeWarpMask = 0;
  /// True when each warp reads only elements that it wrote, so that a warp barrier is enough.
  bool warpLocal = false;
};

struct Conversion {
  std::variant<Rename, ShufflePlan, SharedPlan> plan;
  /// The cost for one warp in quarter cycles of an SM. An arithmetic instruction costs 1, a shuffle or a shared-memory
  /// wavefront costs 4. Exposed waits (barriers, latency) are added in the same unit.
  unsigned cost = 0;
};

/// Returns the cheapest conversion from `from` to `to` for elements of this size. Elements that `from` does not cover
/// are padding. Fails when the layouts differ in rank, threads or blocks, or when a CTA would need elements of another
/// CTA.
llvm::Expected<Conversion> planConversion(const Layout &from, const Layout &to, unsigned elementBytes);

/// Plan one kind of conversion. Each returns nothing when its kind is not possible.
std::optional<Rename> planRename(const Layout &from, const Layout &to);
std::optional<ShufflePlan> planShuffles(const Layout &from, const Layout &to, unsigned elementBytes);
std::optional<SharedPlan> planShared(const Layout &from, const Layout &to, unsigned elementBytes);
unsigned costOf(const ShufflePlan &plan, unsigned elementBytes);
unsigned costOf(const SharedPlan &plan);
} // namespace kpkg::layout
