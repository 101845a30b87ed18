// Makes the chips known to passes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/chips/Chips.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace kpkg::kgpu {
using TargetModel = chips::Chip;

/// Returns the chip of this name, or null.
inline const TargetModel *findTarget(llvm::StringRef chip) { return chips::find(chip); }
/// Returns all chips, oldest first.
inline llvm::ArrayRef<TargetModel> allTargets() { return chips::all; }
} // namespace kpkg::kgpu
