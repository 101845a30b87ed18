// Declares the interface between the interpreter and op handlers, which are found by op name: values, regions, limits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/sim/Values.h"
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <random>
#include <unordered_map>
#include <vector>

namespace kpkg::sim {
/// A tile in row-major order, or a scalar (no shape, one cell).
struct Tile {
  mlir::Type type; // The type of the elements.
  llvm::SmallVector<int64_t, 4> shape;
  std::vector<Cell> cells;

  /// Returns zeros of the shape and element type of `valueType`.
  static Tile ofType(mlir::Type valueType);
  static Tile scalar(mlir::Type type, Cell cell) { return {type, {}, {cell}}; }
  int64_t size() const { return static_cast<int64_t>(cells.size()); }
};

class Frame;
using Handler = llvm::Error (*)(Frame &frame, mlir::Operation &op);
using HandlerTable = llvm::StringMap<Handler>;

/// Each function adds the handlers of one family of ops. A new op is a new line in one of them.
void addArithHandlers(HandlerTable &table);
void addConversionHandlers(HandlerTable &table);
void addMathHandlers(HandlerTable &table);
void addControlHandlers(HandlerTable &table);
void addMemoryHandlers(HandlerTable &table);
void addShapeHandlers(HandlerTable &table);
void addReduceHandlers(HandlerTable &table);
/// Returns the handlers of all of these families.
HandlerTable handlersOfTiles();

/// The state of one block of a running kernel.
class Frame {
public:
  Frame(const HandlerTable &table, const Options &options, int64_t &steps, std::mt19937_64 &random,
        std::array<int64_t, 3> block, std::array<int64_t, 3> grid)
      : block(block), grid(grid), options(options), table(table), steps(steps), random(random) {}

  const Tile &tile(mlir::Value value) const { return std::get<Tile>(values.at(value.getAsOpaquePointer())); }
  const View &view(mlir::Value value) const { return std::get<View>(values.at(value.getAsOpaquePointer())); }
  int64_t integer(mlir::Value scalar) const { return tile(scalar).cells[0].i; }
  /// Binds a value. A loop rebinds the same value in each iteration.
  void set(mlir::Value value, Tile tile) { values.insert_or_assign(value.getAsOpaquePointer(), std::move(tile)); }
  void set(mlir::Value value, View view) { values.insert_or_assign(value.getAsOpaquePointer(), std::move(view)); }
  void setInteger(mlir::Value value, int64_t integer) { set(value, Tile::scalar(value.getType(), Cell{.i = integer})); }
  /// Returns the result of an op on floats of `type` whose value is `value`: computed in f32 for narrower types, then
  /// rounded.
  double result(double value, mlir::Type type) const {
    if (options.inDouble || type.isF64())
      return value;
    return roundTo(static_cast<float>(value), type);
  }

  /// Returns the largest relative error of one rounding in an op on floats of `type`. Narrow types are computed in f32.
  static double roundoff(mlir::Type type) { return type.isF64() ? 0x1p-53 : 0x1p-24; }
  /// Returns the largest relative error of a rounding to `type` itself.
  static double roundoffOf(mlir::Type type) {
    if (!type.isBF16() && !type.isF16() && type.getIntOrFloatBitWidth() > 8)
      return roundoff(type);
    return std::ldexp(1.0, -int(llvm::cast<mlir::FloatType>(type).getFPMantissaWidth()));
  }
  /// Returns `value`, perturbed by up to `error`, as another correct implementation may differ; see Perturbation.
  double inexact(double value, double error);

  /// Returns new memory for an op, in place of what its last execution got. It holds bytes that are NaN in float types.
  char *scratch(mlir::Operation &op, int64_t bytes) {
    std::vector<char> &memory = memories[&op];
    memory.assign(size_t(bytes), char(0xff));
    return memory.data();
  }

  /// Runs one op, including the ops in its regions.
  llvm::Error run(mlir::Operation &op);
  /// Runs the ops of a block up to its terminator, which the caller handles.
  llvm::Error runBlock(mlir::Block &block);
  /// Counts executed element operations. Fails beyond the limit.
  llvm::Error count(mlir::Operation &op, int64_t elements);
  /// Returns an error that names the op and its location.
  llvm::Error error(mlir::Operation &op, const llvm::Twine &message) const;

  const std::array<int64_t, 3> block, grid;
  const Options &options;

private:
  const HandlerTable &table;
  int64_t &steps;
  std::mt19937_64 &random;
  /// Values by the identity of the SSA value. The map is node-based, because handlers hold references to tiles while
  /// they bind others.
  std::unordered_map<void *, std::variant<Tile, View>> values;
  std::unordered_map<mlir::Operation *, std::vector<char>> memories; ///< of ops that provide memory
};
/// Reduces a tile along dimension `dim`, which keeps extent 1, as tile.reduce does.
llvm::Expected<Tile> reduced(Frame &frame, mlir::Operation &op, const Tile &source, tile::ReduceKind kind, int64_t dim);
} // namespace kpkg::sim
