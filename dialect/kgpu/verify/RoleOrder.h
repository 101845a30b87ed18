// Checks that the roles of a kernel use its rings in one order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {

/// Reports an error at the op concerned if roles use rings in different orders, or in loops over different values.
/// Also reports rings that are read by a role and filled by none.
mlir::LogicalResult verifyRoleOrder(RolesOp roles);

} // namespace kpkg::kgpu
