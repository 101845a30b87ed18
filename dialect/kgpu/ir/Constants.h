// Recognises constants.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Matchers.h"

namespace kpkg::kgpu {
/// Returns whether the value is a constant, or a tile of constants, with only zeros.
inline bool isZero(mlir::Value value) {
  return mlir::matchPattern(value, mlir::m_AnyZeroFloat()) || mlir::matchPattern(value, mlir::m_Zero());
}
} // namespace kpkg::kgpu
