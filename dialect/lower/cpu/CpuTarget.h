// Describes the CPU instruction set levels that kernels are compiled for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/DotPlan.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kpkg::lower::cpu {

struct CpuTarget {
  llvm::StringRef isa;      ///< The name in packages, e.g. "x86-64-v3".
  llvm::StringRef triple;   ///< The LLVM target triple.
  llvm::StringRef cpu;      ///< The argument of LLVM's -mcpu.
  llvm::StringRef features; ///< The argument of LLVM's -mattr.
  VectorUnit unit;
  unsigned preferredVectorBits; ///< 0 means LLVM's choice.

  /// Returns the f32 elements in a vector register. All vectors have this many lanes, except in the dot microkernel.
  int64_t lanes() const { return unit.vectorBytes / 4; }

  static llvm::ArrayRef<CpuTarget> all();
  /// Returns the target named `isa`, or an error that lists the known ones.
  static llvm::Expected<CpuTarget> find(llvm::StringRef isa);
};

} // namespace kpkg::lower::cpu
