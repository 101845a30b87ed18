// Finds the ops of a block that values depend on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/Slices.h"
#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;

namespace kpkg::kgpu {
SetVector<Operation *> sliceIn(Block &block, ValueRange values, function_ref<bool(Operation *)> is) {
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false; // values that regions read
  options.filter = [&](Operation *op) { return op->getBlock() == &block && is(op); };
  SetVector<Operation *> slice;
  for (Value value : values)
    if (Operation *op = value.getDefiningOp(); op && options.filter(op))
      (void)getBackwardSlice(op, &slice, options); // fails at arguments of blocks only
  return slice;
}
} // namespace kpkg::kgpu
