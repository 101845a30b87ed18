// Changes the type of a sum that a loop carries.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kpkg::kgpu {
/// Gives carried value `number`, a sum that starts at zero, this type. The caller changes its additions and uses.
inline void setCarriedType(mlir::scf::ForOp loop, unsigned number, mlir::RankedTensorType type) {
  mlir::OpBuilder before(loop);
  mlir::Value zero = mlir::arith::ConstantOp::create(before, loop.getLoc(), before.getZeroAttr(type));
  loop.getInitArgsMutable()[number].assign(zero);
  loop.getRegionIterArg(number).setType(type);
  loop.getResult(number).setType(type);
}
} // namespace kpkg::kgpu
