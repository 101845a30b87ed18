// Builds arithmetic of i32 offsets with constants, for shared-memory addresses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/nvvm/ThreadBits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace kpkg::lower::nvvm {

inline mlir::Value masked(mlir::ImplicitLocOpBuilder &builder, mlir::Value value, int64_t mask) {
  return mlir::arith::AndIOp::create(builder, value, constantOf(builder, mask));
}

inline mlir::Value shifted(mlir::ImplicitLocOpBuilder &builder, mlir::Value value, int64_t by) {
  return mlir::arith::ShRUIOp::create(builder, value, constantOf(builder, by));
}

inline mlir::Value times(mlir::ImplicitLocOpBuilder &builder, mlir::Value value, int64_t by) {
  return mlir::arith::MulIOp::create(builder, value, constantOf(builder, by));
}

inline mlir::Value sum(mlir::ImplicitLocOpBuilder &builder, mlir::Value left, mlir::Value right) {
  return mlir::arith::AddIOp::create(builder, left, right);
}

} // namespace kpkg::lower::nvvm
