// Generates random, well-typed tile kernels and the arguments to call them with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/sim/Number.h"
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include <array>
#include <variant>
#include <vector>

namespace kpkg::sim::test {
/// A view argument: the elements that it covers in a buffer of `count` elements.
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
  /// Whether inputs hold NaN, infinities and signed zeros besides numbers in [-2, 2].
  bool hasSpecialValues;
};

/// The properties of the tensors of a call.
enum class CallStyle {
  Scattered, ///< Small tiles, any strides, no alignment.
  Vectors, ///< Tiles of up to 4096 elements; views are dense and aligned to 16 bytes, most extents are multiples of 16
           ///< bytes.
};

/// Adds kernel `@p<seed>` to the module. The same seed and style give the same kernel and call.
///
/// Programs are defined for every input of the call. They have no division by zero and no conversion out of range.
/// Blocks write to disjoint memory, and scattered indices differ. Float values stay of moderate size, so that
/// comparisons are meaningful.
RandomKernel generateKernel(mlir::ModuleOp module, uint64_t seed, CallStyle style = CallStyle::Scattered);
} // namespace kpkg::sim::test
