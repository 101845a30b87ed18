// Builds linear maps of the bits of the running thread's numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Value.h"

namespace kpkg::lower::nvvm {
/// The thread's numbers as i32 values. Bits beyond those of a layout may be set: such threads are replicas. Where
/// several kernel blocks share a warp, `lane` counts inside the group of lanes that runs one block. A part that no
/// layout uses may be null.
struct ThreadBits {
  mlir::Value lane, warp, block;
  mlir::Value part(layout::Part part) const;
};

/// Returns the XOR of images[i] over the set bits i of `bits`. It takes one shift and mask for each distinct distance
/// of an image. Null when all images are zero.
mlir::Value xorOfImages(mlir::ImplicitLocOpBuilder &builder, mlir::Value bits, llvm::ArrayRef<uint32_t> images);

/// Returns the XOR of two values, either of which may be null (zero).
mlir::Value xorOf(mlir::ImplicitLocOpBuilder &builder, mlir::Value left, mlir::Value right);

/// Returns whether an odd number of the thread bits in `mask` are set. The mask holds laneBits of the lane, then
/// warpBits of the warp, then the block's bits. It is not 0.
mlir::Value parityOf(mlir::ImplicitLocOpBuilder &builder, const ThreadBits &thread, uint64_t mask, unsigned laneBits,
                     unsigned warpBits);

/// Returns an i32 constant.
mlir::Value constantOf(mlir::ImplicitLocOpBuilder &builder, int64_t value);
} // namespace kpkg::lower::nvvm
