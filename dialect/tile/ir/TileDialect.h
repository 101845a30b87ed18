// The tile dialect, its types and its ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace kpkg::tile {
/// Most elements that a tile may have.
inline constexpr int64_t kMaxTileElements = int64_t(1) << 20;

/// The attribute of a kernel for which a target is chosen; only there may tiles have layouts.
inline constexpr llvm::StringLiteral kTargetAttribute = "kgpu.target";

/// True for what every tile satisfies besides its element type: ranked, static, rank >= 1, no extent 0, bounded size.
/// An encoding, the layout of a tile, is allowed here; tile.kernel refuses it where no target is chosen.
bool isTileShape(mlir::Type type);
/// True for the scalar types that tiles and views may hold.
bool isElementType(mlir::Type type);

/// What is known of a view; see the description of !tile.view.
struct ViewFacts {
  int64_t unit = -1;     ///< -1: no unit dimension is known
  int64_t align = 1;     ///< bytes
  int64_t divisible = 1; ///< elements
  int64_t index = 64;    ///< bits
  int64_t outer = 0;     ///< dimensions whose strides `index` leaves out
  /// Offsets of all elements fit 32 bits.
  bool hasSmallOffsets() const { return index == 32 && outer == 0; }
  bool operator==(const ViewFacts &other) const = default;
};
inline llvm::hash_code hash_value(const ViewFacts &facts) {
  return llvm::hash_combine(facts.unit, facts.align, facts.divisible, facts.index, facts.outer);
}
} // namespace kpkg::tile

#include "dialect/tile/ir/TileDialect.h.inc"
#include "dialect/tile/ir/TileEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/tile/ir/TileTypes.h.inc"
#define GET_OP_CLASSES
#include "dialect/tile/ir/TileOps.h.inc"

namespace kpkg::tile {
/// What the op behind `view` took a part of (tile.drop, tile.slice); null for an argument.
mlir::Value sourceOfPart(mlir::Value view);
/// The argument that `view` is, or is a part of.
mlir::Value argumentOf(mlir::Value view);
/// Gives parts of views the types that follow from the types of the arguments.
void inferParts(KernelOp kernel);
} // namespace kpkg::tile
