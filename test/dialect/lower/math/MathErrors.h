// Compiles elementary functions, and measures their errors in units of the last place.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include <cmath>
#include <limits>

namespace kpkg::test {
using Build = mlir::Value (*)(mlir::OpBuilder &, mlir::Location, mlir::Value);

template <typename Op> mlir::Value unary(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x) {
  return Op::create(b, loc, x);
}

/// Adds `void name(x, y, result, n)` to the module, on arrays of n numbers (a multiple of `lanes`). It computes
/// `build`, or powf when `build` is null.
void addFunction(mlir::ModuleOp module, llvm::StringRef name, Build build, bool wide, int64_t lanes);

/// Returns |result - exact| in units of the last place of `exact` as a T, or 0 when both are the same special value.
template <typename T, typename Wide> double ulps(T result, Wide exact) {
  if (std::isnan(exact))
    return std::isnan(result) ? 0 : INFINITY;
  T rounded = T(exact);
  if (std::isinf(result) || std::isinf(rounded)) {
    if (result == rounded)
      return 0;
    // One of the two just overflowed.
    T largest = std::numeric_limits<T>::max();
    return std::fabs(std::isinf(result) ? rounded : result) == largest && std::signbit(result) == std::signbit(rounded)
               ? 1
               : INFINITY;
  }
  int exponent = std::max(std::numeric_limits<T>::min_exponent - 1,
                          std::ilogb(rounded == 0 ? std::numeric_limits<T>::denorm_min() : rounded));
  return double(std::fabs(Wide(result) - exact) / std::ldexp(Wide(1), exponent - std::numeric_limits<T>::digits + 1));
}
} // namespace kpkg::test
