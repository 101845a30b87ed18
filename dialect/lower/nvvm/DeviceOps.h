// Builds device instructions as ops of the GPU and NVVM dialects.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::gpu {
class GPUFuncOp;
} // namespace mlir::gpu

namespace kpkg::lower::nvvm {

/// Return i32 numbers: the index of the thread in its CTA, and of the CTA in its cluster. Along an axis of the grid,
/// they return the CTA's index and the number of CTAs.
mlir::Value threadId(mlir::ImplicitLocOpBuilder &builder);
mlir::Value ctaOfCluster(mlir::ImplicitLocOpBuilder &builder);
mlir::Value ctaId(mlir::ImplicitLocOpBuilder &builder, tile::GridAxis axis);
mlir::Value ctaCount(mlir::ImplicitLocOpBuilder &builder, tile::GridAxis axis);

/// Synchronises all threads of the CTA, the cluster or the warp, and makes their earlier writes visible to each other.
void ctaBarrier(mlir::ImplicitLocOpBuilder &builder);
void clusterBarrier(mlir::ImplicitLocOpBuilder &builder, bool isRelaxed);
/// Waits for all threads of the cluster that have not exited. Each thread waits alone, so the warp may be diverged. The
/// wait does not order memory accesses.
void waitForCluster(mlir::ImplicitLocOpBuilder &builder);
/// Allows the stream's next kernel to start once all CTAs have executed this (programmatic dependent launch).
void letNextKernelStart(mlir::ImplicitLocOpBuilder &builder);
/// Waits until the preceding kernels have completed and their writes are visible.
void waitForKernelBefore(mlir::ImplicitLocOpBuilder &builder);
void warpBarrier(mlir::ImplicitLocOpBuilder &builder);
/// Maps `address` to the shared memory of the CTA of this rank in the cluster.
mlir::Value sharedOfCta(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, unsigned rank);

/// Starts a copy of 4, 8 or 16 bytes from global (ptr<1>) to shared memory (ptr<3>), both aligned to that size. Where
/// `mask` (i1, may be null) is false, it writes zeros and does not read. `isReadAgain`: threads of the same SM will
/// soon read the data again. The copies since the last commit form a group. The wait is for all but the latest
/// `pending` groups.
void asyncCopy(mlir::ImplicitLocOpBuilder &builder, mlir::Value shared, mlir::Value global, unsigned bytes,
               mlir::Value mask, bool isReadAgain = false);
void commitAsyncCopies(mlir::ImplicitLocOpBuilder &builder);
void waitForAsyncCopies(mlir::ImplicitLocOpBuilder &builder, unsigned pending);

/// Loads 1, 2 or 4 matrices by ldmatrix, as one i32 each. `address`: ptr<3> to the row that this lane supplies.
llvm::SmallVector<mlir::Value> loadMatrices(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, unsigned count,
                                            bool isTransposed);

/// Rounds an f32 to the 10 mantissa bits that tensor cores read. Returns an i32.
mlir::Value roundToTf32(mlir::ImplicitLocOpBuilder &builder, mlir::Value value);

/// Rounds two f32 to f8E4M3FN, saturating finite values, and returns an i16 with `low` in the lower byte.
mlir::Value roundToE4M3(mlir::ImplicitLocOpBuilder &builder, mlir::Value low, mlir::Value high);

/// Builds mma.sync with 16 rows and 8 columns on elements of this type. `left` has 4 words, `right` has 2 words, and
/// `sum` has 4 floats or i32.
llvm::SmallVector<mlir::Value> mmaSync(mlir::ImplicitLocOpBuilder &builder, mlir::Type element, mlir::ValueRange left,
                                       mlir::ValueRange right, mlir::ValueRange sum);

/// Makes `function` a kernel with the bounds of the launch.
void setLaunchBounds(mlir::gpu::GPUFuncOp function, const kgpu::Launch &launch);
/// Lets each thread of the enclosing function start with an equal share of the registers. setmaxnreg requires that
/// ptxas knows this number.
void startWithShareOfRegisters(mlir::ImplicitLocOpBuilder &builder);
/// Passes `bytes` bytes of the launch parameters by value as the pointer parameter `number`. Nothing writes them.
void setByValue(mlir::gpu::GPUFuncOp function, unsigned number, unsigned bytes, unsigned alignment);
/// Returns an !llvm.ptr<3> to the CTA's dynamic shared memory. Declares the variable in the enclosing module if needed.
mlir::Value addressOfSharedMemory(mlir::ImplicitLocOpBuilder &builder);
/// Returns whether a pointer is an !llvm.ptr<3>.
bool isShared(mlir::Value pointer);
/// Returns an !llvm.ptr<1> to counter `number` (i32) of the module. The counter (i32) is 0 between launches. Declares
/// the counters in the enclosing module if needed.
mlir::Value addressOfCounter(mlir::ImplicitLocOpBuilder &builder, mlir::Value number);
/// Returns an !llvm.ptr<3> to eight bytes of shared memory, in which one thread shares the position of a message.
mlir::Value addressOfPrintPlace(mlir::ImplicitLocOpBuilder &builder);

} // namespace kpkg::lower::nvvm
