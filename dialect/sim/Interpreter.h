// Runs a tile.kernel on host memory, one block after the other: the meaning that every compiled form is compared to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/sim/Number.h"
#include "dialect/tile/ir/TileDialect.h"
#include "llvm/Support/Error.h"
#include <array>
#include <functional>
#include <string>
#include <variant>

namespace kpkg::sim {
/// A view of host memory: `data` is the element at coordinates 0. Strides count elements.
struct View {
  char *data = nullptr;
  /// What lies in memory: the view's element type, or f64 instead of a float type (for runs in double precision).
  mlir::Type storage;
  llvm::SmallVector<int64_t> shape, strides;
  /// False after an index out of range was dropped: then no element exists.
  bool exists = true;
};

/// A kernel argument: a view, or a scalar of the argument's type.
using Argument = std::variant<View, Cell>;

/// In which order the terms of a sum (dot, reduce, combine) are added. All are correct; their difference shows what
/// rounding may do.
enum class SumOrder { Forward, Backward, Pairwise };

/// How results that another correct implementation may round differently are moved, within the bound of their error:
/// sums, dots, and math functions (4 ulp). The spread of the outputs over several such runs is what a correct result
/// may differ by.
enum class Perturbation { None, Up, Down, Random };

struct Options {
  /// Computes every float operation in double without rounding to its type: the reference for error bounds.
  bool inDouble = false;
  SumOrder sumOrder = SumOrder::Forward;
  Perturbation perturbation = Perturbation::None;
  uint64_t perturbationSeed = 0;
  /// A run that executes more than this many element operations ends with an error.
  int64_t maxSteps = int64_t(1) << 32;
  /// Takes what `tile.print` says, without a line end. Dropped when empty.
  std::function<void(llvm::StringRef)> print;
};

/// Runs all blocks of `grid` (x, y, z). A kernel with tile.for_tiles spreads the iterations over them. Errors:
/// arguments that do not fit the signature, an op that is not known here, a failed tile.assert, division by zero, more
/// steps than allowed.
llvm::Error run(tile::KernelOp kernel, llvm::ArrayRef<Argument> arguments, std::array<int64_t, 3> grid,
                const Options &options = {});
} // namespace kpkg::sim
