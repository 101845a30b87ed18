// Gives the tensors of a plan shadow memory, for kernels that check accesses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/plan/ir/Plan.h"

namespace kpkg::plan_ir {

/// The shadow arguments of kernels: the shadows of all tensor arguments, in their order, follow all other arguments.
/// Each is an int32 tensor of the shape of its tensor.
struct ShadowArguments {
  bool written = false;  ///< 1 for elements that were written, else 0; absent if all were
  bool accesses = false; ///< all 0 before each launch
  /// The kernel (value: Int, mut y: Tensor[int32, 1]) that fills 4096 elements per block, and has no shadows.
  llvm::StringRef fill;
};

/// Adds shadow arguments to all launches of `function` but those of `shadows.fill`, and the tensors that they need.
void addShadows(FuncOp function, const ShadowArguments &shadows);

} // namespace kpkg::plan_ir
