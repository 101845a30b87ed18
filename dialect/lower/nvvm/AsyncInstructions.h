// Instructions of what runs by itself: barriers that count bytes, copies by tensor maps, products of warpgroups.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kpkg::lower::nvvm {

/// Barriers are eight bytes of shared memory; `address` is an !llvm.ptr<3>.
void barrierInit(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, unsigned arrivals);
/// Makes initialised barriers known to copies.
void fenceBarrierInit(mlir::ImplicitLocOpBuilder &builder);
/// Arrives, and says that copies will bring this many bytes.
void barrierExpect(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, int64_t bytes);

/// Of each barrier in shared memory.
inline constexpr int64_t barrierBytes = 8;

/// The barriers of one use of a ring, and the parity of the phase that it makes; which slot that is (i32).
struct RingUse {
  mlir::Value full, empty, parity, slot;
};
/// `barriers`: those of all slots, full ones before empty ones. `use`: i32.
RingUse ringUse(mlir::ImplicitLocOpBuilder &builder, mlir::Value barriers, int64_t slots, mlir::Value use);

/// Writes a number (i32) to shared memory, and arrives at a barrier for those that read it.
void sendNumber(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value number, mlir::Value barrier);
/// i32: what a counter (i32) in global memory held; it counts up to `last` (i32), and then begins at 0 again.
mlir::Value countUpTo(mlir::ImplicitLocOpBuilder &builder, mlir::Value counter, mlir::Value last);

/// !llvm.ptr<7>: what `address` (!llvm.ptr<3>) is in the shared memory of the CTA of this rank (i32) of the cluster.
mlir::Value remoteAddress(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value rank);

/// Copies the box at `coordinates` (i32, innermost first) of a tensor map to shared memory; with `moves` (i16, in the
/// same order, of all dimensions but the innermost and the outermost one) the column of a window that begins there,
/// moved by them. `ctas`: 1, or how many of a cluster get it, each at the same place of its shared memory, and a signal
/// at its own barrier.
void tensorCopy(mlir::ImplicitLocOpBuilder &builder, mlir::Value destination, mlir::Value map,
                mlir::ValueRange coordinates, mlir::ValueRange moves, mlir::Value barrier, unsigned ctas = 1);

/// i32: a value that is the same in all lanes of a warp, in a form that ptxas knows to be so.
mlir::Value uniform(mlir::ImplicitLocOpBuilder &builder, mlir::Value value);
/// i1: true in one lane of a warp that is together here.
mlir::Value electLane(mlir::ImplicitLocOpBuilder &builder);
/// i1: whether it is true in some lane of the warp, all of whose lanes are together here.
mlir::Value anyLane(mlir::ImplicitLocOpBuilder &builder, mlir::Value isTrue);
/// Gives registers of this warpgroup's threads back to the SM, or takes some, until each thread has `count`.
void limitRegisters(mlir::ImplicitLocOpBuilder &builder, unsigned count, bool raises);
/// Numbers of barriers: 0 is the CTA's; then that of all warpgroups that compute, then one for each of them,
/// one more for each, for turns.
inline constexpr unsigned computeBarrier = 1, firstWarpgroupBarrier = 2;
/// `threads` of the CTA, whole warps, wait for each other at barrier `id` (i32).
void namedBarrier(mlir::ImplicitLocOpBuilder &builder, mlir::Value id, unsigned threads);
/// Counts among those `threads` without waiting.
void arriveAtBarrier(mlir::ImplicitLocOpBuilder &builder, mlir::Value id, unsigned threads);

/// The address `bytes` further on.
mlir::Value bytesBehind(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value bytes);
mlir::Value bytesBehind(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, int64_t bytes);

/// Two words of 32 bits to shared memory, 8 bytes aligned.
void storePair(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::ValueRange pair);

/// Four 8x8 matrices of 16-bit elements, a word of each thread for each, to rows of 16 bytes at the lanes' addresses;
/// or their columns, where they are turned.
void storeMatrices(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::ValueRange words, bool turns);
/// Makes this thread's writes to shared memory known to copies that are started later.
void fenceForCopies(mlir::ImplicitLocOpBuilder &builder);
/// Starts a copy of shared memory to the box at `coordinates` of a tensor map, as a group of its own.
void tensorCopyOut(mlir::ImplicitLocOpBuilder &builder, mlir::Value source, mlir::Value map,
                   mlir::ValueRange coordinates);
/// The same for elements that are added to what is there.
void tensorAddOut(mlir::ImplicitLocOpBuilder &builder, mlir::Value source, mlir::Value map,
                  mlir::ValueRange coordinates);
/// Waits until all but the latest `pending` groups of copies of this thread have read their source, or are done.
void waitForBulkReads(mlir::ImplicitLocOpBuilder &builder, int64_t pending);
void waitForBulkCopies(mlir::ImplicitLocOpBuilder &builder);

/// How an operand of a product of warpgroups lies in shared memory.
struct OperandDescriptor {
  mlir::Value address;      ///< i32, in shared memory
  int64_t panelBytes = 0;   ///< from one panel of 128 bytes to the next
  bool isDepthLast = false; ///< panels run along the dimension that is summed over
  bool isNarrow = false;    ///< one panel of 64 bytes instead
};
/// i64: the descriptor of the operand `distance` bytes behind its beginning.
mlir::Value descriptorAt(mlir::ImplicitLocOpBuilder &builder, const OperandDescriptor &operand, int64_t distance);

void wgmmaFence(mlir::ImplicitLocOpBuilder &builder);
void wgmmaCommit(mlir::ImplicitLocOpBuilder &builder);
/// One instruction on `sums`, an !llvm.struct of 64 rows and two columns for each: 32 bytes of depth of operands in
/// shared memory, by descriptors (i64), are added. `element`: see kgpu::isWgmmaElement.
mlir::Value wgmma(mlir::ImplicitLocOpBuilder &builder, mlir::Value sums, mlir::Value lhs, bool lhsIsTransposed,
                  mlir::Value rhs, bool rhsIsTransposed, mlir::Type element);

} // namespace kpkg::lower::nvvm
