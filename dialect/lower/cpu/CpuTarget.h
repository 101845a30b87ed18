// The CPU instruction set levels that kernels are compiled for, as data.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/Dot.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kpkg::lower::cpu {

struct CpuTarget {
  llvm::StringRef isa;      ///< the name in packages, e.g. "x86-64-v3"
  llvm::StringRef triple;   ///< LLVM target triple
  llvm::StringRef cpu;      ///< LLVM -mcpu
  llvm::StringRef features; ///< LLVM -mattr
  VectorUnit unit;
  unsigned preferredVectorBits; ///< 0: LLVM's choice

  /// f32 elements in a vector register: the lanes of every vector that is not the dot microkernel's.
  int64_t lanes() const { return unit.vectorBytes / 4; }

  static llvm::ArrayRef<CpuTarget> all();
  /// The target called `isa`; the error lists the known ones.
  static llvm::Expected<CpuTarget> find(llvm::StringRef isa);
};

} // namespace kpkg::lower::cpu
