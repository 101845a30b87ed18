// How a value gets from one layout into another: renamed registers, shuffles within warps, or through shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"
#include "dialect/layout/Shared.h"
#include <variant>

namespace kpkg::layout {
/// No register: the element is padding, its value does not matter.
inline constexpr unsigned noRegister = ~0u;

/// Every thread has what it needs: register i of the result is register source[i] of the operand (or noRegister).
struct Rename {
  llvm::SmallVector<unsigned> source;
};

/// Every warp has what it needs. Registers are handled in groups (one for each repeat), each of `slots` slots:
///  1. slot s of a group takes operand register operands[group][s];
///  2. for every exchange in `before`: where the parity of (thread bits & threadMask) is odd, slots s and s ^ slotMask
///  swap;
///  3. every round: all threads send slot `from` to slot `to` of a new set of slots, in one shuffle of up to 4 bytes
///  for all of
///     the round's moves; the sender is lane (laneMap applied to the receiver's thread bits) ^ laneXor;
///  4. the exchanges in `after`, on the new slots;
///  5. result register results[group][s] is new slot s.
/// Thread bits: lane, then warp, then block bits. The sets before and after may differ in size.
struct ShufflePlan {
  struct Exchange {
    unsigned slotMask;
    uint64_t threadMask;
  };
  struct Round {
    unsigned laneXor;
    /// (from, to)
    llvm::SmallVector<std::pair<unsigned, unsigned>, 4> moves;
  };
  unsigned laneBits = 0, threadBits = 0;
  unsigned operandSlots = 1, resultSlots = 1;
  /// Registers of the result; those that no group names are padding.
  unsigned resultRegisters = 0;
  /// laneBits rows, threadBits columns.
  BitMatrix laneMap{0, 0};
  /// laneMap takes every thread to its own lane: a round is a butterfly, and none at all when laneXor is 0.
  bool butterfly = false;
  llvm::SmallVector<Exchange> before, after;
  llvm::SmallVector<Round> rounds;
  /// noRegister where a slot has no register.
  llvm::SmallVector<llvm::SmallVector<unsigned, 8>> operands, results;
};

/// Through shared memory: threads whose free bits are 0 store, a barrier, all load.
struct SharedPlan {
  SharedLayout memory;
  SharedAccess store, load;
  /// Only threads with these lane and warp bits all 0 store.
  unsigned storeLaneMask = 0, storeWarpMask = 0;
  /// Each warp reads only what it wrote itself: a warp barrier is enough.
  bool warpLocal = false;
};

struct Conversion {
  std::variant<Rename, ShufflePlan, SharedPlan> plan;
  /// Quarter cycles of an SM for one warp: an arithmetic instruction is 1, a shuffle or a wavefront of shared memory 4;
  /// plus the waiting that nothing hides (barriers, latency) in the same unit.
  unsigned cost = 0;
};

/// The cheapest way from `from` to `to` for elements of this size. Elements that `from` does not cover are padding.
/// Error when the layouts differ in rank, threads or blocks, or when a CTA would need elements of another one.
llvm::Expected<Conversion> planConversion(const Layout &from, const Layout &to, unsigned elementBytes);

/// The same, one way only; nothing when that way does not exist.
std::optional<Rename> planRename(const Layout &from, const Layout &to);
std::optional<ShufflePlan> planShuffles(const Layout &from, const Layout &to, unsigned elementBytes);
std::optional<SharedPlan> planShared(const Layout &from, const Layout &to, unsigned elementBytes);
unsigned costOf(const ShufflePlan &plan, unsigned elementBytes);
unsigned costOf(const SharedPlan &plan);
} // namespace kpkg::layout
