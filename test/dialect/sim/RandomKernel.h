// Makes random, well-typed tile kernels together with the arguments to call them with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/sim/Number.h"
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include <array>
#include <variant>
#include <vector>

namespace kpkg::sim::test {
/// A view argument: which elements of a buffer of `count` elements it covers.
struct ViewArgument {
  tile::ViewType type;
  llvm::SmallVector<int64_t> shape, strides;
  int64_t offset, count;
};

struct ScalarArgument {
  mlir::Type type;
  Cell value;
};

/// A kernel of a module and one call of it.
struct RandomKernel {
  tile::KernelOp kernel;
  uint64_t seed;
  std::vector<std::variant<ViewArgument, ScalarArgument>> arguments;
  std::array<int64_t, 3> grid;
  /// Inputs hold NaN, infinities and signed zeros besides numbers in [-2, 2].
  bool hasSpecialValues;
};

/// What the tensors of a call are like.
enum class CallStyle {
  Scattered, ///< small tiles, any strides, nothing aligned
  Vectors, ///< tiles of up to 4096 elements; views are dense and aligned to 16 bytes, and most extents are multiples of
           ///< 16 bytes
};

/// Adds kernel `@p<seed>` to the module. The same seed and style give the same kernel and call.
///
/// Programs are defined for every input that the call gives: no division by zero, no conversion out of range, blocks
/// write apart from each other, scattered indices differ. Float values stay of moderate size, so that comparisons say
/// something.
RandomKernel generateKernel(mlir::ModuleOp module, uint64_t seed, CallStyle style = CallStyle::Scattered);
} // namespace kpkg::sim::test
