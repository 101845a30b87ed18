// Generates the nodes that only kernels at thread level have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Hir.h"
#include "mlir/IR/Builders.h"

namespace kpkg::compiler {

/// Returns the view of one element of a view.
mlir::Value elementOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value view, mlir::ValueRange indices);

/// Generates a node of a thread from its operands; null for nodes without a result.
mlir::Value threadNode(mlir::OpBuilder &builder, mlir::Location loc, const hir::Node &node, mlir::ValueRange operands,
                       const ThreadBlock &threads);

/// Generates a product of a warp, whose results are the sums.
mlir::Operation *threadMma(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange operands);

} // namespace kpkg::compiler
