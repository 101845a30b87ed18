// Applies functions of cells to whole tiles, for the handlers of elementwise ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/sim/Frame.h"

namespace kpkg::sim {
/// Computes result[i] = function(operand 0 [i], ...) for an op with as many operands as `function` takes cells.
template <typename Function, size_t... Operands>
void mapCells(Frame &frame, mlir::Operation &op, std::index_sequence<Operands...>, Function function) {
  Tile result = Tile::ofType(op.getResult(0).getType());
  const Cell *operands[] = {frame.tile(op.getOperand(Operands)).cells.data()...};
  for (int64_t i = 0, size = result.size(); i < size; ++i)
    result.cells[i] = function(operands[Operands][i]...);
  frame.set(op.getResult(0), std::move(result));
}

template <size_t arity, typename Function> void mapCells(Frame &frame, mlir::Operation &op, Function function) {
  mapCells(frame, op, std::make_index_sequence<arity>(), function);
}

/// Returns the element type of a value.
inline mlir::Type elementOf(mlir::Value value) { return mlir::getElementTypeOrSelf(value.getType()); }

/// Handles a float op of one operand by a function of doubles.
template <double (*function)(double)> llvm::Error unaryFloat(Frame &frame, mlir::Operation &op) {
  mlir::Type type = elementOf(op.getResult(0));
  mapCells<1>(frame, op, [&](Cell a) { return Cell{.f = frame.result(function(a.f), type)}; });
  return llvm::Error::success();
}

/// Handles a float op of two operands by a function of doubles.
template <double (*function)(double, double)> llvm::Error binaryFloat(Frame &frame, mlir::Operation &op) {
  mlir::Type type = elementOf(op.getResult(0));
  mapCells<2>(frame, op, [&](Cell a, Cell b) { return Cell{.f = frame.result(function(a.f, b.f), type)}; });
  return llvm::Error::success();
}
} // namespace kpkg::sim
