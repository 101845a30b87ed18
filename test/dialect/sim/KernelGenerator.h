// Holds the state of the random kernel generator: existing values, choices, and arguments that are added on demand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "RandomKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <random>

namespace kpkg::sim::test {
using Shape = llvm::SmallVector<int64_t>;

/// A tile or scalar with a bound on its magnitude (of all finite elements).
struct Known {
  mlir::Value value;
  double magnitude;

  mlir::RankedTensorType type() const { return mlir::cast<mlir::RankedTensorType>(value.getType()); }
  mlir::Type element() const { return type().getElementType(); }
  llvm::ArrayRef<int64_t> shape() const { return type().getShape(); }
};

class KernelGenerator {
public:
  KernelGenerator(mlir::ModuleOp module, uint64_t seed, CallStyle style);
  RandomKernel generate();

private:
  // Choices.
  int64_t below(int64_t bound) { return static_cast<int64_t>(random() % static_cast<uint64_t>(bound)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename Range> auto pick(const Range &range) { return *(std::begin(range) + below(std::size(range))); }
  mlir::Type pickFloat();
  mlir::Type pickInteger();
  int64_t pickExtent();
  /// Returns an extent of a dot. The work of a dot is the product of its extents.
  int64_t pickDotExtent();
  Shape pickShape(int64_t rank);
  /// Returns a recent tile that `accepts`, or a null value if there is none.
  Known pickTile(llvm::function_ref<bool(const Known &)> accepts);

  // Building (KernelGenerator.cpp).
  Known add(mlir::Value value, double magnitude);
  mlir::Value index(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, value); }
  mlir::Value addIndex(mlir::Value x, int64_t y);
  /// Returns a constant of a scalar or tile type.
  mlir::Value constant(mlir::Type type, double value);
  mlir::Value clamp(Known tile, double limit);
  ViewArgument layout(tile::ViewType type, Shape shape);
  mlir::Value newView(mlir::Type element, Shape shape, bool isMut);
  mlir::Value newScalar(mlir::Type type);
  /// Returns an index scalar that is small, possibly negative, and possibly different in each block.
  mlir::Value anyIndex();
  mlir::Value condition();
  /// Drops dimensions of a view in excess of `rank`.
  mlir::Value dropTo(mlir::Value view, int64_t rank);

  // Steps (ElementwiseSteps.cpp): each adds at least one tile, or does nothing when no values fit.
  void floatUnary(Known x);
  void floatBinary(Known x);
  void integerBinary(Known x);
  void boolBinary(Known x);
  void compareAndSelect(Known x);
  void convert(Known x);
  // Steps (TileSteps.cpp).
  Known load(mlir::Type element, Shape shape);
  Known gather(mlir::Type element, Shape shape);
  Known match(mlir::Type element, llvm::ArrayRef<int64_t> shape);
  mlir::Value indexTile(llvm::ArrayRef<int64_t> shape);
  void reshapeStep(Known x);
  void extractStep(Known x);
  void scalarStep(Known x);
  void joinStep(Known x);
  void unpackStep(Known x);
  void scratchStep(Known x);
  void reduceStep(Known x);
  void functionStep(Known x);
  void dotStep();
  void store(Known x);
  void scatter(Known x);
  // Steps with regions (KernelGenerator.cpp).
  void step(int depth);
  void elementwiseStep(Known x);
  void forLoop(int depth);
  void branch(int depth);
  void whileLoop(int depth);
  void steps(int count, int depth);
  /// Returns the newest tile of `like`'s type, clamped to the magnitude, for a region to yield.
  mlir::Value yieldFor(Known like, double magnitude);

  /// Returns the maximum number of elements of loaded tiles.
  int64_t mostElements() const { return style == CallStyle::Vectors ? 4096 : 600; }

  CallStyle style;
  std::mt19937_64 random;
  mlir::ImplicitLocOpBuilder b;
  RandomKernel result;
  std::vector<Known> tiles;
  std::vector<mlir::Value> indices, views;
  /// Distinct for each block (or iteration of the persistent loop), from 0 to blocks - 1.
  mlir::Value blockNumber;
  int64_t blocks = 1;
};
} // namespace kpkg::sim::test
