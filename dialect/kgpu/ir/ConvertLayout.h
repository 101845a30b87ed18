// Converts values to another layout where theirs differs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Returns `value` as the type `type`, which may have another layout.
inline mlir::Value converted(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type type) {
  return value.getType() == type ? value : CvtLayoutOp::create(builder, loc, type, value).getResult();
}
/// Returns `value` in this layout.
inline mlir::Value converted(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                             const layout::Layout &layout) {
  return converted(builder, loc, value, withLayout(value.getType(), layout));
}
/// Converts an op's operand to the layout that the op needs.
inline void convertOperand(mlir::OpOperand &operand, const layout::Layout &layout) {
  mlir::OpBuilder builder(operand.getOwner());
  operand.set(converted(builder, operand.getOwner()->getLoc(), operand.get(), layout));
}

/// Sets the layout of an op's result, and converts it to the layout that its users expect.
inline void giveLayout(mlir::OpResult result, const layout::Layout &layout) {
  mlir::Type expected = result.getType(), given = withLayout(expected, layout);
  if (given == expected)
    return;
  mlir::OpBuilder builder(result.getContext());
  builder.setInsertionPointAfter(result.getOwner());
  result.setType(given);
  auto convert = CvtLayoutOp::create(builder, result.getLoc(), expected, result);
  result.replaceAllUsesExcept(convert.getResult(), convert);
}
} // namespace kpkg::kgpu
