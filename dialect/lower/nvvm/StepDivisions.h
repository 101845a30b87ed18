// Divisions in the steps of a loop that copies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::lower::nvvm {
/// Whether each step of a loop that copies divides numbers of which nothing is known: that takes registers.
bool dividesInSteps(kgpu::RolesOp roles);

/// Divisions of 32-bit numbers there by what all steps divide by become multiplications: the thread that copies does
/// one after the other, and a division is longer than all else of its step. Only where all of a step's divisions do.
/// Quotients are the same for all numbers; by 0 or less is divided as before.
void multiplyInSteps(kgpu::RolesOp roles);
} // namespace kpkg::lower::nvvm
