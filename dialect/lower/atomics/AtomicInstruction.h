// Selects the LLVM instruction of an atomic update.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kpkg::lower {

/// Returns the atomic operation for `kind`. Float max and min are the variants that return NaN where one operand is
/// NaN.
inline mlir::LLVM::AtomicBinOp atomicInstruction(tile::AtomicKind kind, bool isFloat) {
  using mlir::LLVM::AtomicBinOp;
  switch (kind) {
  case tile::AtomicKind::Add:
    return isFloat ? AtomicBinOp::fadd : AtomicBinOp::add;
  case tile::AtomicKind::Max:
    return isFloat ? AtomicBinOp::fmaximum : AtomicBinOp::max;
  case tile::AtomicKind::Min:
    return isFloat ? AtomicBinOp::fminimum : AtomicBinOp::min;
  case tile::AtomicKind::UMax:
    return AtomicBinOp::umax;
  case tile::AtomicKind::UMin:
    return AtomicBinOp::umin;
  case tile::AtomicKind::Exchange:
    return AtomicBinOp::xchg;
  case tile::AtomicKind::CompareExchange:
    break;
  }
  llvm_unreachable("an atomic update that is no read-modify-write");
}

} // namespace kpkg::lower
