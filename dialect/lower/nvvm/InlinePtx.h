// Instructions that neither the NVVM dialect nor LLVM 22 can write, as inline PTX: the only place that has any.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// README.md has a row for each function: what the NVVM dialect lacks, and the test that fails once it does not.
#pragma once
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kpkg::lower::nvvm::ptx {

/// Reads `count` words of `wordBytes` (1, 2, 4 or 8) from global memory: integers of that size, but i16 for one byte
/// too. Where `mask` (i1, may be null) is false nothing is read and the results are `fill`. `isConstant`: no one writes
/// there while the kernel runs.
llvm::SmallVector<mlir::Value> globalLoad(mlir::ImplicitLocOpBuilder &builder, mlir::Value pointer, mlir::Value mask,
                                          unsigned wordBytes, unsigned count, mlir::Value fill, bool isConstant);
/// Writes the words, whose types are those of globalLoad, where `mask` (i1, may be null) is true.
void globalStore(mlir::ImplicitLocOpBuilder &builder, mlir::Value pointer, mlir::Value mask, unsigned wordBytes,
                 mlir::ValueRange words);

/// cp.async of 16 bytes past the first cache, with the rest of their 128 bytes brought to the second one.
void asyncCopyOnce(mlir::ImplicitLocOpBuilder &builder, mlir::Value shared, mlir::Value global);
/// cp.async of `bytes` where `mask` (i1) is true, and of zeros elsewhere; `isOnce`: as above.
void asyncCopyWhere(mlir::ImplicitLocOpBuilder &builder, mlir::Value shared, mlir::Value global, unsigned bytes,
                    mlir::Value mask, bool isOnce);

/// Starts to bring the sector at `address` (!llvm.ptr<1>) into the second-level cache where `mask` holds.
void prefetchWhere(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value mask);

/// Arrives at an mbarrier (!llvm.ptr<3>) of this CTA, or (!llvm.ptr<7>) of another one of the cluster, where
/// `predicate` holds.
void barrierArriveWhere(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value predicate);
/// Waits until the phase of this parity (i32) of an mbarrier has ended.
void barrierWait(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value parity);
/// Stores an i32 or i64 at an address (!llvm.ptr<7>) in the shared memory of a CTA of the cluster, and counts its bytes
/// at the mbarrier at another one, in the same CTA.
void sendAndSignal(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, mlir::Value bits, mlir::Value barrier);

/// i32 or i64: the value, of which the compiler below knows nothing: what is computed from it is computed here, and
/// takes no registers elsewhere. LLVM and ptxas take addresses out of loops whose products leave no registers for them
/// (measured on an H200: 7 % of an attention's gradient).
mlir::Value hidden(mlir::ImplicitLocOpBuilder &builder, mlir::Value value);
/// i32 each: what `address` (!llvm.ptr<3>) has, 1, 2 or 4 words at once. LLVM does not see what they are made of, and
/// takes narrow elements out of words as of those from global memory: one instruction for each.
llvm::SmallVector<mlir::Value> wordsAt(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, unsigned count);

/// i32: four f32 as f8E4M3FN, the finite ones that are too large as the largest; the first one in the lowest byte.
mlir::Value roundFourToE4M3(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange values);

/// Where the elements stand that a left operand has two of every four of.
struct Positions {
  mlir::Value word;      ///< i32; null: the operand has all elements
  unsigned selector = 0; ///< which two lanes of four have the words
};
/// One wgmma.mma_async: 64 rows, 2 * sums.size() columns, 32 bytes of depth of the left operand. `lhs` is a descriptor
/// (i64), or four words (i32) of the fragment in registers. `adds`: i1; null = true. `element`: see
/// kgpu::isWgmmaElement. One that `overwrites` takes no registers for what the sums were before. The result is an
/// !llvm.struct of the sums.
mlir::Value wgmma(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange sums, mlir::ValueRange lhs,
                  bool lhsIsTransposed, mlir::Value rhs, bool rhsIsTransposed, mlir::Value adds, mlir::Type element,
                  bool overwrites, const Positions &positions);
/// Waits until at most `pending` groups of products run; gives `sums` as they are then.
llvm::SmallVector<mlir::Value> wgmmaWait(mlir::ImplicitLocOpBuilder &builder, int64_t pending, mlir::ValueRange sums);

} // namespace kpkg::lower::nvvm::ptx
