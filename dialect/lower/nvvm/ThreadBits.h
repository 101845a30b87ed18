// The numbers of the running thread, and code that computes with their bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Value.h"

namespace kpkg::lower::nvvm {
/// i32 values. Bits that a layout does not speak of may be set: threads that differ only there hold the same of it.
/// Where several kernel blocks share a warp, `lane` counts inside of the group of lanes that runs one. A part that no
/// layout uses may be null.
struct ThreadBits {
  mlir::Value lane, warp, block;
  mlir::Value part(layout::Part part) const;
};

/// XOR of images[i] over the bits i that are set in `bits`: as few shifts and masks as the images have distances.
/// Null when all images are zero.
mlir::Value xorOfImages(mlir::ImplicitLocOpBuilder &builder, mlir::Value bits, llvm::ArrayRef<uint32_t> images);

/// The XOR of two values, either of which may be null (zero).
mlir::Value xorOf(mlir::ImplicitLocOpBuilder &builder, mlir::Value left, mlir::Value right);

/// Whether an odd number of the thread bits in `mask` are set (laneBits of the lane, then warpBits of the warp, then
/// the block); mask != 0.
mlir::Value parityOf(mlir::ImplicitLocOpBuilder &builder, const ThreadBits &thread, uint64_t mask, unsigned laneBits,
                     unsigned warpBits);

/// The i32 constant.
mlir::Value constantOf(mlir::ImplicitLocOpBuilder &builder, int64_t value);
} // namespace kpkg::lower::nvvm
