// Emits reductions and scans along an axis whose elements lie in the registers and lanes of one warp.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/nvvm/ThreadBits.h"

namespace kpkg::lower::nvvm {
/// Combines two groups of scalars, one for each input. The left group comes first along the axis.
using Combine = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange left, mlir::ValueRange right)>;

/// One list for each input: the registers of its tile.
using Registers = llvm::SmallVector<llvm::SmallVector<mlir::Value>>;

/// Returns why reduceAlong and scanAlong cannot work along `axis`, or an empty text if they can. They cannot if
/// elements lie in several warps or blocks, or if a bit also moves along another dimension.
std::string whyNotAlong(const layout::Layout &layout, unsigned axis);

/// Combines all elements along `axis`. The results are the registers of slice(layout, axis), replicated over the lanes
/// that are free there. Each thread combines contiguous elements in ascending order, and the whole order is fixed.
/// Padding is combined too, so the caller replaces it by neutral elements.
Registers reduceAlong(mlir::ImplicitLocOpBuilder &builder, const layout::Layout &layout, unsigned axis,
                      const Registers &inputs, Combine combine);

/// The results of a scan.
struct Scanned {
  Registers results; ///< In the layout of the operand.
  Registers totals;  ///< In slice(layout, axis): the combination of all elements, replicated over the lanes that are
                     ///< free there.
};

/// Whether an element's result includes the element. An exclusive result of the first element along the axis is
/// undefined.
enum class ScanKind { Inclusive, Exclusive };

/// Scans in ascending order along `axis`.
Scanned scanAlong(mlir::ImplicitLocOpBuilder &builder, const layout::Layout &layout, unsigned axis,
                  const Registers &inputs, const ThreadBits &thread, Combine combine,
                  ScanKind kind = ScanKind::Inclusive);
} // namespace kpkg::lower::nvvm
