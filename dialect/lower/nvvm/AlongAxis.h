// Reductions and scans along an axis whose elements lie in the registers and lanes of one warp.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/nvvm/ThreadBits.h"

namespace kpkg::lower::nvvm {
/// Combines two groups of scalars, one for each input, the left ones being earlier along the axis.
using Combine = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange left, mlir::ValueRange right)>;

/// One list for each input: the registers of its tile.
using Registers = llvm::SmallVector<llvm::SmallVector<mlir::Value>>;

/// Why reduceAlong and scanAlong cannot work along `axis`, or an empty text: elements lie in several warps or blocks,
/// or a bit moves along another dimension too.
std::string whyNotAlong(const layout::Layout &layout, unsigned axis);

/// Combines all elements along `axis`: registers of slice(layout, axis), the same in all lanes that are free there.
/// Elements are combined in ascending order inside of each thread's run of neighbours, in a fixed order in all. Padding
/// enters like elements: the caller puts neutral ones there.
Registers reduceAlong(mlir::ImplicitLocOpBuilder &builder, const layout::Layout &layout, unsigned axis,
                      const Registers &inputs, Combine combine);

/// What a scan gives.
struct Scanned {
  Registers results; ///< of the layout
  Registers totals;  ///< of slice(layout, axis): all elements along the axis, the same in all lanes that are free there
};

/// Whether an element's result includes the element. Where it does not, that of the first one along the axis has no
/// meaning.
enum class ScanKind { Inclusive, Exclusive };

/// The scan in ascending order along `axis`.
Scanned scanAlong(mlir::ImplicitLocOpBuilder &builder, const layout::Layout &layout, unsigned axis,
                  const Registers &inputs, const ThreadBits &thread, Combine combine,
                  ScanKind kind = ScanKind::Inclusive);
} // namespace kpkg::lower::nvvm
