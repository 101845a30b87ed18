// Builds arithmetic on tile numbers and coordinates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace kpkg::kgpu {
/// Builds arithmetic on values of one integer type, of which none is negative in a division.
struct Arithmetic {
  mlir::OpBuilder &builder;
  mlir::Location loc;

  mlir::Value index(int64_t value) { return mlir::arith::ConstantIndexOp::create(builder, loc, value); }
  mlir::Value add(mlir::Value a, mlir::Value b) { return mlir::arith::AddIOp::create(builder, loc, a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return mlir::arith::SubIOp::create(builder, loc, a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return mlir::arith::MulIOp::create(builder, loc, a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return mlir::arith::DivUIOp::create(builder, loc, a, b); }
  mlir::Value rest(mlir::Value a, mlir::Value b) { return mlir::arith::RemUIOp::create(builder, loc, a, b); }
  mlir::Value choose(mlir::Value condition, mlir::Value yes, mlir::Value no) {
    return mlir::arith::SelectOp::create(builder, loc, condition, yes, no);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b) {
    return mlir::arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
};
} // namespace kpkg::kgpu
