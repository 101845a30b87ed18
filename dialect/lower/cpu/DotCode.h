// What the parts of the dot builder share: index arithmetic, addresses, and the interfaces of packing and of the
// microkernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/Dot.h"
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
  /// x / divisor and its rounding up to a multiple, for x >= 0.
  mlir::Value quotient(mlir::Value x, int64_t divisor);
  mlir::Value roundUp(mlir::Value x, int64_t multiple);

  /// Address of element `offset` (an index) of an array of `element`.
  mlir::Value at(mlir::Value base, mlir::Type element, mlir::Value offset);
  mlir::Value at(mlir::Value base, mlir::Type element, int64_t offset);
  mlir::VectorType vectorOf(int64_t lanes) { return mlir::VectorType::get(lanes, plan.shape.accType); }
  /// What panels consist of: accType, or pairs of bf16 as integers. Both have the bytes of accType.
  mlir::Type stepType() { return plan.shape.pairs ? mlir::Type(b.getI32Type()) : plan.shape.accType; }
  mlir::VectorType stepsOf(int64_t lanes) { return mlir::VectorType::get(lanes, stepType()); }
  int64_t accBytes() { return plan.shape.accType.getIntOrFloatBitWidth() / 8; }
  mlir::Value load(mlir::Type type, mlir::Value pointer, int64_t alignment);
  void store(mlir::Value value, mlir::Value pointer, int64_t alignment);
  /// `lanes` elements of `element` from `pointer`, converted to accType; a scalar when lanes is 0.
  mlir::Value loadConverted(mlir::Value pointer, mlir::Type element, int64_t lanes);
  /// `lanes` consecutive steps of a line whose elements are neighbours; a scalar when lanes is 0.
  mlir::Value loadSteps(mlir::Value pointer, mlir::Type element, int64_t lanes);
  /// The same step of `lanes` lines that are neighbours in memory; elements of a line are `stride` apart.
  mlir::Value loadLines(mlir::Value pointer, mlir::Value stride, mlir::Type element, int64_t lanes);
  /// A step of two elements as integers.
  mlir::Value pairOf(mlir::Value low, mlir::Value high);
  /// Whether masks load parts of vectors of `element`; other machines would test each lane.
  bool hasMasks(mlir::Type element);
  /// The lanes of `mask` from memory, the others from `rest` (null for zeros); as in memory, for `converted`.
  mlir::Value loadMasked(mlir::Value pointer, mlir::Type element, mlir::Value mask, mlir::Value rest);
  /// What was loaded of `element`, as integers where it is bf16, converted to accType.
  mlir::Value converted(mlir::Value loaded, mlir::Type element);

  /// sum + a * b in each lane; of vectors of pairs, both products.
  mlir::Value multiplyAdd(mlir::Value a, mlir::Value b, mlir::Value sum);

  /// for i in [0, end): body(i)
  void forEach(mlir::Value begin, mlir::Value end, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  void ifThen(mlir::Value condition, llvm::function_ref<void()> body);
  void ifElse(mlir::Value condition, llvm::function_ref<void()> body, llvm::function_ref<void()> otherwise);
};

/// Packs rows [row, row + rows) and columns [k, k + kSteps) of `a`: panels of mr rows, mr * kc elements apart, in each
/// panel blocks of kUnroll columns, in each block the rows one after the other. What lies outside of the operand
/// becomes zero, also up to full panels.
void packRows(DotCode &code, const BoundedOperand &a, mlir::Value row, mlir::Value rows, mlir::Value k,
              mlir::Value kSteps, mlir::Value packed);

/// Packs rows [k, k + kSteps) and columns [column, column + columns) of `b`: panels of nr columns, nr * kc elements
/// apart, each row-major.
void packColumns(DotCode &code, const BoundedOperand &b, mlir::Value column, mlir::Value columns, mlir::Value k,
                 mlir::Value kSteps, mlir::Value packed);

/// The rest of a panel of packRows, blocks [from, blocks), where an operand that begins before it and whose depth or
/// rows are contiguous ends. Needs masks.
void packRowEdge(DotCode &code, const BoundedOperand &a, mlir::Value alongDepth, mlir::Value first, mlir::Value k,
                 mlir::Value from, mlir::Value blocks, mlir::Value panel);
/// The same of packColumns, steps [from, kSteps) of a panel that begins with column `first`.
void packColumnEdge(DotCode &code, const BoundedOperand &b, mlir::Value alongColumns, mlir::Value first, mlir::Value k,
                    mlir::Value from, mlir::Value kSteps, mlir::Value panel);

/// The same for operands with a table of lines. Panels may stick out of it by less than kLinesBehind.
void packRowLines(DotCode &code, const BoundedOperand &a, mlir::Value row, mlir::Value rows, mlir::Value k,
                  mlir::Value kSteps, mlir::Value packed);
void packColumnLines(DotCode &code, const BoundedOperand &b, mlir::Value column, mlir::Value columns, mlir::Value k,
                     mlir::Value kSteps, mlir::Value packed);

/// acc += a * b for operands without tables that begin at 0 and have the same `depth`: read where they lie, for few
/// rows. `multiplyAcross` needs columns of `b` that are neighbours and no pairs, `multiplyAlong` a contiguous depth in
/// both. Without masks the former needs a multiple of nr columns, the latter one of a vector's elements in the depth.
void multiplyAcross(DotCode &code, const BoundedOperand &a, const BoundedOperand &b, mlir::Value depth, mlir::Value acc,
                    int64_t accStride);
void multiplyAlong(DotCode &code, const BoundedOperand &a, const BoundedOperand &b, mlir::Value depth, mlir::Value acc,
                   int64_t accStride);

/// Lanes before `count`.
mlir::Value firstLanes(DotCode &code, mlir::Value count, int64_t lanes);
/// `lanes` steps of the depth from `pointer`, those that `mask` has, as they are multiplied; the rest is zero.
mlir::Value loadFirstSteps(DotCode &code, mlir::Value pointer, mlir::Type element, mlir::Value mask, int64_t lanes);

/// The transpose of `rows`, as many vectors as each has lanes (a power of two): log2 rounds of exchanging half-blocks.
llvm::SmallVector<mlir::Value> transpose(DotCode &code, llvm::SmallVector<mlir::Value> rows);
/// DotCode::loadLines in a vector of `width` lanes, the rest arbitrary.
mlir::Value loadWidened(DotCode &code, mlir::Value pointer, mlir::Value stride, mlir::Type element, int64_t lanes,
                        int64_t width);

/// Adds the product of one packed row panel and the first vectors of one packed column panel over kSteps (a multiple of
/// kUnroll) to the part of `acc` at (row, column). `edge` has room for a register tile: it serves where the tile sticks
/// out of the accumulator.
void multiplyPanels(DotCode &code, mlir::Value rowPanel, mlir::Value columnPanel, int64_t vectors, mlir::Value kSteps,
                    mlir::Value acc, int64_t accStride, mlir::Value row, mlir::Value column, mlir::Value edge);

} // namespace kpkg::lower::cpu
