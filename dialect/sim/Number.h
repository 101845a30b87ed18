// Element types as numbers: how they are rounded to and how they lie in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinTypes.h"

namespace kpkg::sim {
/// One element: a double holds every value of the supported float types, an int64_t (sign-extended) every integer.
union Cell {
  double f;
  int64_t i;
};

inline bool isFloat(mlir::Type type) { return mlir::isa<mlir::FloatType>(type); }

/// Width of an integer or index type in bits; index has 64.
unsigned integerWidth(mlir::Type type);

/// Bytes that an element takes in memory; i1 takes one.
int64_t storageSize(mlir::Type type);

/// Rounds to nearest even into the float type `type`, straight from the double. Too large: infinity, or NaN in
/// f8E4M3FN.
double roundTo(double value, mlir::Type type);

/// Keeps the low bits that `type` has, sign-extended.
int64_t wrapTo(int64_t value, mlir::Type type);

/// The low bits that `type` has, zero-extended.
uint64_t unsignedOf(int64_t value, mlir::Type type);

/// Reads an element of `type` from memory.
Cell loadCell(const char *memory, mlir::Type type);

/// Writes an element of `type` to memory; a float must be a value of `type` already. NaNs become the quiet NaN of the
/// type.
void storeCell(char *memory, Cell cell, mlir::Type type);
} // namespace kpkg::sim
