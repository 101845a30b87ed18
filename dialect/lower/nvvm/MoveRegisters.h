// Conversion plans as code: values that change registers and lanes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Conversion.h"
#include "dialect/lower/nvvm/ThreadBits.h"

namespace kpkg::lower::nvvm {
/// One word from lane ^ `mask` of the same warp. All lanes of the warp must arrive here.
mlir::Value shuffleXor(mlir::ImplicitLocOpBuilder &builder, mlir::Value word, unsigned mask);

/// One word from lane `source` (i32) of the reader's group of 2^laneBits lanes.
mlir::Value shuffleFrom(mlir::ImplicitLocOpBuilder &builder, mlir::Value word, mlir::Value source, unsigned laneBits);

/// shuffleXor of an element of any type.
mlir::Value shuffleElementXor(mlir::ImplicitLocOpBuilder &builder, mlir::Value element, unsigned mask);

/// The result's registers; padding is poison.
llvm::SmallVector<mlir::Value> moveRegisters(mlir::ImplicitLocOpBuilder &builder, const layout::Rename &plan,
                                             mlir::ValueRange operand);
llvm::SmallVector<mlir::Value> moveRegisters(mlir::ImplicitLocOpBuilder &builder, const layout::ShufflePlan &plan,
                                             mlir::ValueRange operand, const ThreadBits &thread, unsigned warpBits);
} // namespace kpkg::lower::nvvm
