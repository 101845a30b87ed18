// Declares the tile dialect, its types and its ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/schedule/Schedule.h"
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
/// The maximum number of elements of a tile.
inline constexpr int64_t kMaxTileElements = int64_t(1) << 20;

/// The attribute that marks a kernel with a chosen target. Only in such kernels tiles may have layouts.
inline constexpr llvm::StringLiteral kTargetAttribute = "kgpu.target";

/// Returns whether a type meets the requirements of tiles, apart from the element type: ranked, static, rank >= 1, no
/// extent of 0, bounded size. An encoding, which is the layout of a tile, is allowed here. tile.kernel rejects it where
/// no target is chosen.
bool isTileShape(mlir::Type type);
/// Returns whether tiles and views may have elements of this type.
bool isElementType(mlir::Type type);

/// The facts known about a view; see the description of !tile.view.
struct ViewFacts {
  int64_t unit = -1;     ///< -1: no unit dimension is known.
  int64_t align = 1;     ///< In bytes.
  int64_t divisible = 1; ///< In elements.
  int64_t index = 64;    ///< In bits.
  int64_t outer = 0;     ///< Leading dimensions whose offsets `index` does not cover.
  /// Returns whether offsets of all elements fit 32 bits.
  bool hasSmallOffsets() const { return index == 32 && outer == 0; }
  bool operator==(const ViewFacts &other) const = default;
};
inline llvm::hash_code hash_value(const ViewFacts &facts) {
  return llvm::hash_combine(facts.unit, facts.align, facts.divisible, facts.index, facts.outer);
}
inline llvm::hash_code hash_value(const Schedule &schedule) {
  return llvm::hash_combine_range(schedule.all().begin(), schedule.all().end());
}
} // namespace kpkg::tile

#include "dialect/tile/ir/TileDialect.h.inc"
#include "dialect/tile/ir/TileEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/tile/ir/TileAttributes.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/tile/ir/TileTypes.h.inc"
#define GET_OP_CLASSES
#include "dialect/tile/ir/TileOps.h.inc"

namespace kpkg::tile {
/// Returns the view of which tile.drop or tile.slice took `view` as a part. Returns null for a whole view.
mlir::Value sourceOfPart(mlir::Value view);
/// Returns the whole view, an argument or a block's own memory, that `view` is or is a part of.
mlir::Value argumentOf(mlir::Value view);
/// Updates the types of parts of views to follow from the types of the arguments.
void inferParts(KernelOp kernel);
} // namespace kpkg::tile
