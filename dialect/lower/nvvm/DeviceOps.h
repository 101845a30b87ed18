// Instructions that only the device has, as ops of the GPU and NVVM dialects.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::gpu {
class GPUFuncOp;
} // namespace mlir::gpu

namespace kpkg::lower::nvvm {

/// i32: number of the thread in its CTA; of the CTA in its cluster; of the CTA in the grid, and the grid's size, along
/// an axis.
mlir::Value threadId(mlir::ImplicitLocOpBuilder &builder);
mlir::Value ctaOfCluster(mlir::ImplicitLocOpBuilder &builder);
mlir::Value ctaId(mlir::ImplicitLocOpBuilder &builder, tile::GridAxis axis);
mlir::Value ctaCount(mlir::ImplicitLocOpBuilder &builder, tile::GridAxis axis);

/// All threads of the CTA, or of the cluster, or of the warp wait for each other and see each other's earlier writes.
void ctaBarrier(mlir::ImplicitLocOpBuilder &builder);
void clusterBarrier(mlir::ImplicitLocOpBuilder &builder, bool isRelaxed);
/// The threads of the cluster that come here wait for all others that have not ended, one by one: those of a warp need
/// not be together. Nothing that was written is made known.
void waitForCluster(mlir::ImplicitLocOpBuilder &builder);
/// What a kernel needs that the runtime launches before the one in front of it has ended. Lets the next kernel of the
/// stream start once all CTAs have come here.
void letNextKernelStart(mlir::ImplicitLocOpBuilder &builder);
/// Waits until the memory of the kernels before is as they left it.
void waitForKernelBefore(mlir::ImplicitLocOpBuilder &builder);
void warpBarrier(mlir::ImplicitLocOpBuilder &builder);
/// The same address in the shared memory of the CTA of this rank of the cluster.
mlir::Value sharedOfCta(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, unsigned rank);

/// Starts to copy 4, 8 or 16 bytes from global (ptr<1>) to shared memory (ptr<3>), both aligned to as many; zeros where
/// `mask` (i1, may be null) is false, and then nothing is read. `isReadAgain`: by this or other threads of the
/// processor, soon. What was started since the last commit is a group; the wait is for all but the latest `pending`
/// groups.
void asyncCopy(mlir::ImplicitLocOpBuilder &builder, mlir::Value shared, mlir::Value global, unsigned bytes,
               mlir::Value mask, bool isReadAgain = false);
void commitAsyncCopies(mlir::ImplicitLocOpBuilder &builder);
void waitForAsyncCopies(mlir::ImplicitLocOpBuilder &builder, unsigned pending);

/// ldmatrix of 1, 2 or 4 matrices: an i32 each. `address`: ptr<3> to the row for which this lane speaks.
llvm::SmallVector<mlir::Value> loadMatrices(mlir::ImplicitLocOpBuilder &builder, mlir::Value address, unsigned count,
                                            bool isTransposed);

/// i32: an f32 rounded to the 10 bits of mantissa that the tensor cores read.
mlir::Value roundToTf32(mlir::ImplicitLocOpBuilder &builder, mlir::Value value);

/// i16: two f32 as f8E4M3FN, the finite ones that are too large as the largest; `low` in the lower byte.
mlir::Value roundToE4M3(mlir::ImplicitLocOpBuilder &builder, mlir::Value low, mlir::Value high);

/// mma.sync with 16 rows and 8 columns on elements of this type: `left` 4, `right` 2 words, `sum` 4 floats or i32.
llvm::SmallVector<mlir::Value> mmaSync(mlir::ImplicitLocOpBuilder &builder, mlir::Type element, mlir::ValueRange left,
                                       mlir::ValueRange right, mlir::ValueRange sum);

/// Makes `function` a kernel with the launch's bounds.
void setLaunchBounds(mlir::gpu::GPUFuncOp function, const kgpu::Launch &launch);
/// Lets each thread of the function around begin with its share of all registers: where they move between roles, ptxas
/// must know how many it has.
void startWithShareOfRegisters(mlir::ImplicitLocOpBuilder &builder);
/// Makes parameter `number` of a kernel, a pointer, stand for so many bytes of the launch's parameters, which nothing
/// writes.
void setByValue(mlir::gpu::GPUFuncOp function, unsigned number, unsigned bytes, unsigned alignment);
/// !llvm.ptr<3>: the beginning of the CTA's dynamic shared memory. Declares it in the module around `builder` when it
/// is not there yet.
mlir::Value addressOfSharedMemory(mlir::ImplicitLocOpBuilder &builder);
/// !llvm.ptr<1>: counter `number` (i32) of the module (i32), which is 0 where no launch counts. Declares them where
/// they are not there yet.
mlir::Value addressOfCounter(mlir::ImplicitLocOpBuilder &builder, mlir::Value number);
/// !llvm.ptr<3>: eight bytes of shared memory of their own, by which one thread tells the others where a message goes.
mlir::Value addressOfPrintPlace(mlir::ImplicitLocOpBuilder &builder);

} // namespace kpkg::lower::nvvm
