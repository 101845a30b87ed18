// Whether the roles of a kernel use its rings in one order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {

/// Fails, with an error at the op concerned, where roles use rings in different orders, in loops that run for other
/// values, or where a ring is read that no role fills.
mlir::LogicalResult verifyRoleOrder(RolesOp roles);

} // namespace kpkg::kgpu
