// Strength-reduces divisions in the steps of a producer loop.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::lower::nvvm {
/// Returns whether steps of a producer loop divide. Divisions need extra registers.
bool dividesInSteps(kgpu::RolesOp roles);

/// Replaces 32-bit divisions by a loop-invariant divisor in these steps by multiplications. The producer thread runs
/// them one after the other, and one division takes longer than the rest of a step. Does nothing unless all divisions
/// of the steps qualify. Quotients are exact for all dividends; a divisor of 0 or less still divides.
void multiplyInSteps(kgpu::RolesOp roles);
} // namespace kpkg::lower::nvvm
