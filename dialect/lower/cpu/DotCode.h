// Declares the helpers that the parts of the dot builder share, and the interfaces of packing and the microkernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/DotPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kpkg::lower::cpu {

/// A DotOperand with all bounds filled in: 0 <= begin[d] and end[d] <= the extent.
struct BoundedOperand {
  mlir::Value base;
  std::array<mlir::Value, 2> stride, begin, end;
  mlir::Type elementType;
  mlir::Value lines = {}, nothing = {};
};

class DotCode {
public:
  DotCode(mlir::OpBuilder &builder, mlir::Location loc, const DotPlan &plan) : b(loc, builder), plan(plan) {}

  mlir::ImplicitLocOpBuilder b;
  const DotPlan &plan;

  mlir::Value index(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, value); }
  mlir::Value add(mlir::Value x, mlir::Value y) { return mlir::arith::AddIOp::create(b, x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return mlir::arith::SubIOp::create(b, x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return mlir::arith::MulIOp::create(b, x, y); }
  mlir::Value min(mlir::Value x, mlir::Value y) { return mlir::arith::MinSIOp::create(b, x, y); }
  mlir::Value max(mlir::Value x, mlir::Value y) { return mlir::arith::MaxSIOp::create(b, x, y); }
  mlir::Value both(mlir::Value x, mlir::Value y) { return mlir::arith::AndIOp::create(b, x, y); }
  mlir::Value either(mlir::Value x, mlir::Value y) { return mlir::arith::OrIOp::create(b, x, y); }
  mlir::Value atMost(mlir::Value x, mlir::Value y);
  mlir::Value isOne(mlir::Value x);
  /// Return x / divisor, and x rounded up to a multiple of divisor, for x >= 0.
  mlir::Value quotient(mlir::Value x, int64_t divisor);
  mlir::Value roundUp(mlir::Value x, int64_t multiple);

  /// Returns the address of element `offset` (an index) in an array of `element`.
  mlir::Value at(mlir::Value base, mlir::Type element, mlir::Value offset);
  mlir::Value at(mlir::Value base, mlir::Type element, int64_t offset);
  mlir::VectorType vectorOf(int64_t lanes) { return mlir::VectorType::get(lanes, plan.shape.accType); }
  /// Returns the element type of panels: accType, or an integer that holds a pair of bf16. Both have the size of
  /// accType.
  mlir::Type stepType() { return plan.shape.pairs ? mlir::Type(b.getI32Type()) : plan.shape.accType; }
  mlir::VectorType stepsOf(int64_t lanes) { return mlir::VectorType::get(lanes, stepType()); }
  int64_t accBytes() { return plan.shape.accType.getIntOrFloatBitWidth() / 8; }
  mlir::Value load(mlir::Type type, mlir::Value pointer, int64_t alignment);
  void store(mlir::Value value, mlir::Value pointer, int64_t alignment);
  /// Loads `lanes` elements of `element` from `pointer` and converts them to accType. Loads a scalar when lanes is 0.
  mlir::Value loadConverted(mlir::Value pointer, mlir::Type element, int64_t lanes);
  /// Loads `lanes` consecutive steps of a line with contiguous elements. Loads a scalar when lanes is 0.
  mlir::Value loadSteps(mlir::Value pointer, mlir::Type element, int64_t lanes);
  /// Loads the same step of `lanes` lines that are contiguous in memory. Elements of a line are `stride` apart.
  mlir::Value loadLines(mlir::Value pointer, mlir::Value stride, mlir::Type element, int64_t lanes);
  /// Packs two elements into a step, as an integer.
  mlir::Value pairOf(mlir::Value low, mlir::Value high);
  /// Returns whether masked loads of `element` exist. Other machines would test each lane.
  bool hasMasks(mlir::Type element);
  /// Loads the lanes of `mask` and takes the others from `rest` (null: zeros). The result is unconverted; see
  /// `converted`.
  mlir::Value loadMasked(mlir::Value pointer, mlir::Type element, mlir::Value mask, mlir::Value rest);
  /// Converts loaded elements to accType. bf16 elements are loaded as integers.
  mlir::Value converted(mlir::Value loaded, mlir::Type element);

  /// Returns sum + a * b in each lane. For vectors of pairs it adds both products.
  mlir::Value multiplyAdd(mlir::Value a, mlir::Value b, mlir::Value sum);

  /// Emits for i in [begin, end) by `step`: body(i).
  void forEach(mlir::Value begin, mlir::Value end, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  void ifThen(mlir::Value condition, llvm::function_ref<void()> body);
  void ifElse(mlir::Value condition, llvm::function_ref<void()> body, llvm::function_ref<void()> otherwise);
};

/// Packs rows [row, row + rows) and columns [k, k + kSteps) of `a` into panels of mr rows, mr * kc elements apart. A
/// panel consists of blocks of kUnroll columns, and a block stores its rows consecutively. Elements outside the operand
/// become zero, also in rows that fill the last panel.
void packRows(DotCode &code, const BoundedOperand &a, mlir::Value row, mlir::Value rows, mlir::Value k,
              mlir::Value kSteps, mlir::Value packed);

/// Packs rows [k, k + kSteps) and columns [column, column + columns) of `b` into row-major panels of nr columns, nr *
/// kc elements apart.
void packColumns(DotCode &code, const BoundedOperand &b, mlir::Value column, mlir::Value columns, mlir::Value k,
                 mlir::Value kSteps, mlir::Value packed);

/// Packs blocks [from, blocks) of a packRows panel in which the operand ends. The operand begins before the panel, and
/// its depth or its rows are contiguous. Needs masked loads.
void packRowEdge(DotCode &code, const BoundedOperand &a, mlir::Value alongDepth, mlir::Value first, mlir::Value k,
                 mlir::Value from, mlir::Value blocks, mlir::Value panel);
/// As packRowEdge, for steps [from, kSteps) of a packColumns panel that begins with column `first`.
void packColumnEdge(DotCode &code, const BoundedOperand &b, mlir::Value alongColumns, mlir::Value first, mlir::Value k,
                    mlir::Value from, mlir::Value kSteps, mlir::Value panel);

/// Pack operands that have a table of lines. Panels may exceed the operand by less than kLinesBehind lines.
void packRowLines(DotCode &code, const BoundedOperand &a, mlir::Value row, mlir::Value rows, mlir::Value k,
                  mlir::Value kSteps, mlir::Value packed);
void packColumnLines(DotCode &code, const BoundedOperand &b, mlir::Value column, mlir::Value columns, mlir::Value k,
                     mlir::Value kSteps, mlir::Value packed);

/// Compute acc += a * b for few rows, without packing. The operands have no tables, begin at 0 and have the same
/// `depth`. `multiplyAcross` needs contiguous columns of `b` and no pairs. `multiplyAlong` needs a contiguous depth in
/// both operands. Without masked loads, the number of columns must be a multiple of nr for the former. For the latter,
/// the depth must be a multiple of a vector's elements.
void multiplyAcross(DotCode &code, const BoundedOperand &a, const BoundedOperand &b, mlir::Value depth, mlir::Value acc,
                    int64_t accStride);
void multiplyAlong(DotCode &code, const BoundedOperand &a, const BoundedOperand &b, mlir::Value depth, mlir::Value acc,
                   int64_t accStride);

/// As multiplyAlong, with the tiles of AMX. The number of columns must be a multiple of kTilesAlong * kTileRows, and
/// the depth a multiple of a tile's row. `scratch` holds a column panel, and `edge` a register tile and another tile.
void multiplyTilesAlong(DotCode &code, const BoundedOperand &a, const BoundedOperand &b, mlir::Value depth,
                        mlir::Value acc, int64_t accStride, mlir::Value scratch, mlir::Value edge);

/// Returns the mask of lanes below `count`.
mlir::Value firstLanes(DotCode &code, mlir::Value count, int64_t lanes);
/// Loads the `lanes` steps of the depth at `pointer` that `mask` selects, in the form that is multiplied. Others are
/// zero.
mlir::Value loadFirstSteps(DotCode &code, mlir::Value pointer, mlir::Type element, mlir::Value mask, int64_t lanes);

/// Transposes `rows`, whose number equals their lanes (a power of two), by log2 rounds of exchanging half-blocks.
llvm::SmallVector<mlir::Value> transpose(DotCode &code, llvm::SmallVector<mlir::Value> rows);
/// As DotCode::loadLines, in a vector of `width` lanes. The additional lanes are arbitrary.
mlir::Value loadWidened(DotCode &code, mlir::Value pointer, mlir::Value stride, mlir::Type element, int64_t lanes,
                        int64_t width);

/// Multiplies one packed row panel by the first `vectors` vectors of one packed column panel, over kSteps steps. The
/// product is added to the part of `acc` at (row, column). kSteps is a multiple of kUnroll. `edge` has room for a
/// register tile, and is used where the tile exceeds the accumulator.
void multiplyPanels(DotCode &code, mlir::Value rowPanel, mlir::Value columnPanel, int64_t vectors, mlir::Value kSteps,
                    mlir::Value acc, int64_t accStride, mlir::Value row, mlir::Value column, mlir::Value edge);

/// Tiles of columns that multiplyTilesAlong multiplies at a time.
inline constexpr int64_t kTilesAlong = 2;

/// As multiplyPanels, with the tiles of AMX.
void multiplyTiles(DotCode &code, mlir::Value rowPanel, mlir::Value columnPanel, int64_t vectors, mlir::Value kSteps,
                   mlir::Value acc, int64_t accStride, mlir::Value row, mlir::Value column, mlir::Value edge);

/// Emits `body` between the instructions that configure the tiles of AMX and release them. `memory` has
/// kTileConfigurationBytes.
void withTiles(DotCode &code, mlir::Value memory, llvm::function_ref<void()> body);

} // namespace kpkg::lower::cpu
