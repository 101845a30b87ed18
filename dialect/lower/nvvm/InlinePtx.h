// Emits as inline PTX the instructions that neither the NVVM dialect nor LLVM 22 offers. No other file has inline PTX.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// README.md has a row for each function: the feature that the NVVM dialect lacks, and the test that fails once LLVM has
// it.
#pragma once
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kpkg::lower::nvvm::ptx {

/// Reads `count` words of `wordBytes` (1, 2, 4 or 8) from global or shared memory. The results are integers of that
/// size, but i16 for one byte. Where `mask` (i1, may be null) is false, nothing is read and the results are `fill`.
/// `isConstant`: no one writes the memory while the kernel runs.
llvm::SmallVector<mlir::Value> viewLoad(mlir::ImplicitLocOpBuilder &builder, mlir::Value pointer, mlir::Value mask,
                                        unsigned wordBytes, unsigned count, mlir::Value fill, bool isConstant);
/// Writes the words, with the types of viewLoad, where `mask` (i1, may be null) is true.
void viewStore(mlir::ImplicitLocOpBuilder &builder, mlir::Value pointer, mlir::Value mask, unsigned wordBytes,
               mlir::ValueRange words);

/// Emits a cp.async of 16 bytes that bypasses the L1 cache and prefetches the surrounding 128 bytes into the L2 cache.
void asyncCopyOnce(mlir::ImplicitLocOpBuilder &builder, mlir::Value shared, mlir::Value global);
/// Emits a cp.async of `bytes` where `mask` (i1) is true, and of zeros elsewhere. `isOnce`: as asyncCopyOnce.
void asyncCopyWhere(mlir::ImplicitLocOpBuilder &builder, mlir::Value shared, mlir::Value global, unsigned bytes,
                    mlir::Value mask, bool isOnce);

/// Prefetches the sector at `address` (!llvm.ptr<1>) into the L2 cache where `mask` holds.
void prefetchWhere(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value mask);

/// Arrives where `predicate` holds at an mbarrier of this CTA (!llvm.ptr<3>), or of another CTA of the cluster
/// (!llvm.ptr<7>).
void barrierArriveWhere(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value predicate);
/// Waits until the phase of this parity (i32) of an mbarrier is complete.
void barrierWait(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value parity);
/// Stores an i32 or i64 at an address (!llvm.ptr<7>) in the shared memory of a CTA of the cluster. The store counts its
/// bytes at an mbarrier of the same CTA.
void sendAndSignal(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value bits, mlir::Value barrier);

/// Returns an i32 or i64 as an opaque value, so that values computed from it are not hoisted and hold no registers
/// elsewhere. LLVM and ptxas otherwise hoist addresses out of loops whose products leave no registers for them.
/// Measured on an H200: this costs 7 % of an attention's gradient.
mlir::Value hidden(mlir::ImplicitLocOpBuilder &builder, mlir::Value value);
/// Loads 1, 2 or 4 words (i32) at `address` (!llvm.ptr<3>) with one instruction. The load is opaque to LLVM, which then
/// extracts narrow elements with one instruction each, as from words of global memory.
llvm::SmallVector<mlir::Value> wordsAt(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, unsigned count);

/// Rounds four f32 to f8E4M3FN, saturating finite values, and returns an i32 with the first one in the lowest byte.
mlir::Value roundFourToE4M3(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange values);

/// The positions of the kept elements of a 2:4 sparse left operand.
struct Positions {
  mlir::Value word;      ///< i32; null: the operand is dense.
  unsigned selector = 0; ///< Which two lanes of each four supply the words.
};
/// Emits one wgmma.mma_async: 64 rows, 2 * sums.size() columns, 32 bytes of depth of the left operand. `lhs` is a
/// descriptor (i64), or four words (i32) of the fragment in registers. `adds`: i1; null = true. `element`: see
/// kgpu::isWgmmaElement. With `overwrites`, the instruction does not read the old accumulators, so they take no
/// registers. The result is an !llvm.struct of the sums.
mlir::Value wgmma(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange sums, mlir::ValueRange lhs,
                  bool lhsIsTransposed, mlir::Value rhs, bool rhsIsTransposed, mlir::Value adds, mlir::Type element,
                  bool overwrites, const Positions &positions);
/// Waits until at most `pending` groups of products are in flight, and returns the new values of `sums`.
llvm::SmallVector<mlir::Value> wgmmaWait(mlir::ImplicitLocOpBuilder &builder, int64_t pending, mlir::ValueRange sums);

} // namespace kpkg::lower::nvvm::ptx
