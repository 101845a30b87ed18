// Emits layout conversions as register moves and shuffles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Conversion.h"
#include "dialect/lower/nvvm/ThreadBits.h"

namespace kpkg::lower::nvvm {
/// Reads one word from lane ^ `mask` of the same warp. All lanes of the warp must participate.
mlir::Value shuffleXor(mlir::ImplicitLocOpBuilder &builder, mlir::Value word, unsigned mask);

/// Reads one word from lane `source` (i32) of the reader's group of 2^laneBits lanes.
mlir::Value shuffleFrom(mlir::ImplicitLocOpBuilder &builder, mlir::Value word, mlir::Value source, unsigned laneBits);

/// Runs shuffleXor on an element of any type.
mlir::Value shuffleElementXor(mlir::ImplicitLocOpBuilder &builder, mlir::Value element, unsigned mask);

/// Return the registers of the result; padding is poison.
llvm::SmallVector<mlir::Value> moveRegisters(mlir::ImplicitLocOpBuilder &builder, const layout::Rename &plan,
                                             mlir::ValueRange operand);
llvm::SmallVector<mlir::Value> moveRegisters(mlir::ImplicitLocOpBuilder &builder, const layout::ShufflePlan &plan,
                                             mlir::ValueRange operand, const ThreadBits &thread, unsigned warpBits);
} // namespace kpkg::lower::nvvm
