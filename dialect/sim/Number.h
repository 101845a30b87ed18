// Converts elements between numbers and their representation in memory, for every element type.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinTypes.h"

namespace kpkg::sim {
/// One element. A double holds every value of the supported float types, an int64_t (sign-extended) every integer.
union Cell {
  double f;
  int64_t i;
};

inline bool isFloat(mlir::Type type) { return mlir::isa<mlir::FloatType>(type); }

/// Returns the width of an integer or index type in bits. An index has 64.
unsigned integerWidth(mlir::Type type);

/// Returns the bytes of an element in memory. An i1 takes one.
int64_t storageSize(mlir::Type type);

/// Rounds the double directly to the float type `type`, to nearest even. Overflow becomes infinity, or NaN in f8E4M3FN.
double roundTo(double value, mlir::Type type);

/// Returns the low bits that `type` has, sign-extended.
int64_t wrapTo(int64_t value, mlir::Type type);

/// Returns the low bits that `type` has, zero-extended.
uint64_t unsignedOf(int64_t value, mlir::Type type);

/// Reads an element of `type` from memory.
Cell loadCell(const char *memory, mlir::Type type);

/// Writes an element of `type` to memory. A float must be representable in `type`. NaNs become the quiet NaN of the
/// type.
void storeCell(char *memory, Cell cell, mlir::Type type);
} // namespace kpkg::sim
