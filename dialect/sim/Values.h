// Declares the values of an interpreted kernel, and the options of a run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/sim/Number.h"
#include "mlir/IR/Types.h"
#include <functional>
#include <variant>

namespace kpkg::sim {
/// A view of host memory. `data` is the element at coordinates 0, and strides count elements.
struct View {
  char *data = nullptr;
  /// The type in memory: the view's element type, or f64 instead of a float type (for runs in double precision).
  mlir::Type storage;
  llvm::SmallVector<int64_t> shape, strides;
  /// False after an out-of-range index was dropped. The view then has no elements.
  bool exists = true;
};

/// A kernel argument: a view, or a scalar of the argument's type.
using Argument = std::variant<View, Cell>;

/// The order in which the terms of a sum (dot, reduce, combine) are added. All orders are correct; their difference
/// shows the effect of rounding.
enum class SumOrder { Forward, Backward, Pairwise };

/// How results that another correct implementation may round differently are perturbed, within their error bound. This
/// concerns sums, dots, and math functions (4 ulp). The spread of the outputs over several such runs is the tolerance
/// for correct results.
enum class Perturbation { None, Up, Down, Random };

struct Options {
  /// Computes every float operation in double without rounding to its type: the reference for error bounds.
  bool inDouble = false;
  SumOrder sumOrder = SumOrder::Forward;
  Perturbation perturbation = Perturbation::None;
  uint64_t perturbationSeed = 0;
  /// A run that executes more element operations than this ends with an error.
  int64_t maxSteps = int64_t(1) << 32;
  /// Receives the text of `tile.print`, without a line end. Ignored when empty.
  std::function<void(llvm::StringRef)> print;
};

} // namespace kpkg::sim
