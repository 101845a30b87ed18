// Builds asynchronous instructions: mbarriers, TMA copies, warpgroup matrix products.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kpkg::lower::nvvm {

/// Initialises an mbarrier for `arrivals` arrivals. It is eight bytes of shared memory; `address` is an !llvm.ptr<3>.
void barrierInit(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, unsigned arrivals);
/// Makes initialised barriers visible to asynchronous copies.
void fenceBarrierInit(mlir::ImplicitLocOpBuilder &builder);
/// Arrives, and adds `bytes` to the transaction count that copies have to complete.
void barrierExpect(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, int64_t bytes);

/// The size of a barrier in shared memory.
inline constexpr int64_t barrierBytes = 8;

/// The barriers of one use of a ring, the parity of the phase that it completes, and its slot (i32).
struct RingUse {
  mlir::Value full, empty, parity, slot;
};
/// `barriers`: the barriers of all slots, full ones before empty ones. `use`: i32.
RingUse ringUse(mlir::ImplicitLocOpBuilder &builder, mlir::Value barriers, int64_t slots, mlir::Value use);

/// Writes a number (i32) to shared memory, and arrives at the barrier that its readers wait for.
void sendNumber(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value number, mlir::Value barrier);
/// Increments a counter (i32) in global memory atomically, and wraps to 0 after `last` (i32). Returns the old value, an
/// i32.
mlir::Value countUpTo(mlir::ImplicitLocOpBuilder &builder, mlir::Value counter, mlir::Value last);

/// Maps `address` (!llvm.ptr<3>) to the shared memory of the CTA of this rank (i32) in the cluster. Returns an
/// !llvm.ptr<7>.
mlir::Value remoteAddress(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value rank);

/// Copies the box at `coordinates` (i32, innermost first) of a tensor map to shared memory, and signals `barrier`. With
/// `moves` the copy is in im2col mode: it starts at a window's position, and the moves offset it. They are i16, in the
/// same order, for all dimensions but the innermost and the outermost one. With `ctas` > 1 the copy is multicast to so
/// many CTAs of the cluster. Each receives it at the same shared-memory offset, and its own barrier is signalled.
void tensorCopy(mlir::ImplicitLocOpBuilder &builder, mlir::Value destination, mlir::Value map,
                mlir::ValueRange coordinates, mlir::ValueRange moves, mlir::Value barrier, unsigned ctas = 1);

/// Returns an i32 that is the same in all lanes of a warp, in a form that ptxas recognises as uniform.
mlir::Value uniform(mlir::ImplicitLocOpBuilder &builder, mlir::Value value);
/// Returns an i1 that is true in one lane of the warp. The warp must be converged.
mlir::Value electLane(mlir::ImplicitLocOpBuilder &builder);
/// Returns an i1: whether `isTrue` holds in any lane of the warp, which must be converged.
mlir::Value anyLane(mlir::ImplicitLocOpBuilder &builder, mlir::Value isTrue);
/// Sets the register count of this warpgroup's threads by setmaxnreg: raises it, or releases registers to the SM.
void limitRegisters(mlir::ImplicitLocOpBuilder &builder, unsigned count, bool raises);
/// Numbers of named barriers. 0 is the CTA's, 1 is that of all computing warpgroups. One for each of these follows,
/// then one more for each, for ping-pong turns.
inline constexpr unsigned computeBarrier = 1, firstWarpgroupBarrier = 2;
/// Waits at named barrier `id` (i32) for `threads` threads of the CTA, in whole warps.
void namedBarrier(mlir::ImplicitLocOpBuilder &builder, mlir::Value id, unsigned threads);
/// Arrives at a named barrier among `threads` threads, without waiting.
void arriveAtBarrier(mlir::ImplicitLocOpBuilder &builder, mlir::Value id, unsigned threads);

/// Returns the address `bytes` after `address`.
mlir::Value bytesBehind(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value bytes);
mlir::Value bytesBehind(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, int64_t bytes);

/// Stores two 32-bit words to shared memory at an address aligned to 8 bytes.
void storePair(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::ValueRange pair);

/// Stores four 8x8 matrices of 16-bit elements by stmatrix, with one word of each thread for each matrix. The rows of
/// 16 bytes go to the lanes' addresses. With `turns` the matrices are transposed.
void storeMatrices(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::ValueRange words, bool turns);
/// Makes this thread's writes to shared memory visible to asynchronous copies that start later.
void fenceForCopies(mlir::ImplicitLocOpBuilder &builder);
/// Starts a copy of shared memory to the box at `coordinates` of a tensor map, as its own bulk group.
void tensorCopyOut(mlir::ImplicitLocOpBuilder &builder, mlir::Value source, mlir::Value map,
                   mlir::ValueRange coordinates);
/// As tensorCopyOut, but adds the elements to those in memory.
void tensorAddOut(mlir::ImplicitLocOpBuilder &builder, mlir::Value source, mlir::Value map,
                  mlir::ValueRange coordinates);
/// Waits until at most `pending` bulk groups of this thread have not finished reading their source. waitForBulkCopies
/// waits until all are complete.
void waitForBulkReads(mlir::ImplicitLocOpBuilder &builder, int64_t pending);
void waitForBulkCopies(mlir::ImplicitLocOpBuilder &builder);

/// The location of a wgmma operand in shared memory.
struct OperandDescriptor {
  mlir::Value address;      ///< i32, in shared memory.
  int64_t panelBytes = 0;   ///< From one panel of 128 bytes to the next.
  bool isDepthLast = false; ///< Panels run along the summed dimension.
  bool isNarrow = false;    ///< One panel of 64 bytes instead.
};
/// Returns the i64 matrix descriptor of the operand, `distance` bytes after its beginning.
mlir::Value descriptorAt(mlir::ImplicitLocOpBuilder &builder, const OperandDescriptor &operand, int64_t distance);

void wgmmaFence(mlir::ImplicitLocOpBuilder &builder);
void wgmmaCommit(mlir::ImplicitLocOpBuilder &builder);
/// Emits one wgmma on `sums`, an !llvm.struct of 64 rows with two columns for each element. It adds the product of 32
/// bytes of depth of two operands in shared memory, given by descriptors (i64). `element`: see kgpu::isWgmmaElement.
mlir::Value wgmma(mlir::ImplicitLocOpBuilder &builder, mlir::Value sums, mlir::Value lhs, bool lhsIsTransposed,
                  mlir::Value rhs, bool rhsIsTransposed, mlir::Type element);

} // namespace kpkg::lower::nvvm
