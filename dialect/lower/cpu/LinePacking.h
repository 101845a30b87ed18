// Declares the packing of dot operands whose lines lie at the offsets of a table.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/DotCode.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace kpkg::lower::cpu {

/// Packs a part of an operand, steps [k, k + kSteps) of the depth, into panels.
struct LinePacking {
  DotCode &code;
  const BoundedOperand &operand;
  int depth; ///< The operand's dimension of the depth.
  mlir::Value k, kSteps;
  mlir::Value first, last; ///< The steps of [0, kSteps) that lie entirely inside the operand.

  LinePacking(DotCode &code, const BoundedOperand &operand, int depth, mlir::Value k, mlir::Value kSteps)
      : code(code), operand(operand), depth(depth), k(k), kSteps(kSteps) {
    auto stepOf = [&](mlir::Value element) {
      return code.quotient(code.max(element, code.index(0)), code.plan.width());
    };
    auto clamp = [&](mlir::Value step, mlir::Value least) {
      return code.min(code.max(code.sub(step, k), least), kSteps);
    };
    first = clamp(stepOf(code.add(operand.begin[depth], code.index(code.plan.width() - 1))), code.index(0));
    last = clamp(stepOf(operand.end[depth]), first);
  }

  mlir::Value stride() { return operand.stride[depth]; }
  mlir::Value i64(int64_t value) { return mlir::arith::ConstantOp::create(code.b, code.b.getI64IntegerAttr(value)); }
  mlir::Value i32(int64_t value) { return mlir::arith::ConstantOp::create(code.b, code.b.getI32IntegerAttr(value)); }
  mlir::Value offsetOf(mlir::Value line) {
    return code.load(code.b.getI64Type(), code.at(operand.lines, code.b.getI64Type(), line), 8);
  }
  mlir::Value isInside(mlir::Value offset) {
    return mlir::arith::CmpIOp::create(code.b, mlir::arith::CmpIPredicate::ne, offset, i64(kNoLine));
  }
  mlir::Value zero(mlir::Type type) { return mlir::arith::ConstantOp::create(code.b, code.b.getZeroAttr(type)); }
  mlir::Value elementOf(mlir::Value step) { return code.mul(code.add(k, step), code.index(code.plan.width())); }
  /// Returns the distance between the elements of consecutive steps.
  mlir::Value stepStride() { return code.mul(stride(), code.index(code.plan.width())); }
  /// Returns the address of step `step` of the line at `offset`.
  mlir::Value place(mlir::Value offset, mlir::Value step) {
    mlir::Value line = code.at(operand.base, operand.elementType,
                               mlir::arith::IndexCastOp::create(code.b, code.b.getIndexType(), offset));
    return code.at(line, operand.elementType, code.mul(elementOf(step), stride()));
  }
  /// Returns the number of whole blocks of `size` steps inside the operand, counted from the first step.
  mlir::Value wholeBlocks(int64_t size) {
    mlir::Value begins = mlir::arith::CmpIOp::create(code.b, mlir::arith::CmpIPredicate::eq, first, code.index(0));
    return mlir::arith::SelectOp::create(code.b, begins, code.quotient(last, size), code.index(0));
  }
  bool hasMasks() { return code.hasMasks(operand.elementType); }
  /// Returns the mask of the steps of the partial block behind the whole blocks, and whether there is one. Needs masked
  /// loads.
  std::pair<mlir::Value, mlir::Value> partOfBlock(mlir::Value whole, int64_t size) {
    mlir::Value count = code.sub(last, code.mul(whole, code.index(size)));
    mlir::Value begins = mlir::arith::CmpIOp::create(code.b, mlir::arith::CmpIPredicate::eq, first, code.index(0));
    mlir::Value isPart =
        code.both(begins, code.both(code.atMost(code.index(1), count), code.atMost(count, code.index(size - 1))));
    llvm::SmallVector<int32_t> numbers;
    for (int64_t lane = 0; lane < size; ++lane)
      numbers.push_back(lane);
    auto vector = mlir::VectorType::get({size}, code.b.getI32Type());
    mlir::Value lanes =
        mlir::arith::ConstantOp::create(code.b, mlir::DenseElementsAttr::get(vector, llvm::ArrayRef<int32_t>(numbers)));
    mlir::Value end = mlir::vector::BroadcastOp::create(
        code.b, vector, mlir::arith::IndexCastOp::create(code.b, code.b.getI32Type(), count).getResult());
    return {mlir::arith::CmpIOp::create(code.b, mlir::arith::CmpIPredicate::slt, lanes, end), isPart};
  }
  /// Loads the contiguous steps that `mask` selects.
  mlir::Value loadPart(mlir::Value place, mlir::Value mask) {
    if (code.plan.shape.pairs)
      return code.loadMasked(place, code.b.getI32Type(), mask, mlir::Value());
    return code.converted(code.loadMasked(place, operand.elementType, mask, mlir::Value()), operand.elementType);
  }
  /// Returns the first step behind the whole blocks and, with masked loads, behind the partial block.
  mlir::Value behindBlocks(mlir::Value whole, mlir::Value isPart, int64_t size) {
    mlir::Value blocks =
        hasMasks() ? code.add(whole, mlir::arith::IndexCastUIOp::create(code.b, code.b.getIndexType(), isPart)) : whole;
    return code.mul(blocks, code.index(size));
  }
  /// Loads a step of the line at `offset` of which a part may lie outside.
  mlir::Value partOfStep(mlir::Value offset, mlir::Value step) {
    if (!code.plan.shape.pairs)
      return zero(code.plan.shape.accType);
    mlir::Value halves[2];
    for (int64_t i = 0; i < 2; ++i) {
      mlir::Value element = code.add(elementOf(step), code.index(i));
      mlir::Value isThere = code.both(code.atMost(operand.begin[depth], element),
                                      code.atMost(code.add(element, code.index(1)), operand.end[depth]));
      mlir::Value place = code.at(this->place(offset, step), operand.elementType, code.mul(code.index(i), stride()));
      halves[i] = code.load(code.b.getIntegerType(16),
                            mlir::LLVM::SelectOp::create(code.b, isThere, place, operand.nothing), 2);
    }
    return code.pairOf(halves[0], halves[1]);
  }
  /// Copies the steps from `begin` on of the line at `offset` one by one, with zeros outside. `target` returns a step's
  /// address.
  void oneByOne(mlir::Value offset, mlir::Value begin, llvm::function_ref<mlir::Value(mlir::Value)> target) {
    auto store = [&](mlir::Value step, mlir::Value value) { code.store(value, target(step), code.accBytes()); };
    mlir::Value from = code.max(begin, first);
    auto part = [&](mlir::Value step) { store(step, partOfStep(offset, step)); };
    code.forEach(begin, code.min(from, kSteps), 1, part);
    code.forEach(from, last, 1, [&](mlir::Value step) {
      store(step, code.loadLines(place(offset, step), stride(), operand.elementType, 0));
    });
    code.forEach(code.max(from, last), kSteps, 1, part);
  }

  /// Copies the step of the partial block of which only one half is inside.
  void halfOfPair(mlir::Value offset, mlir::Value isPart, llvm::function_ref<mlir::Value(mlir::Value)> target) {
    if (!code.plan.shape.pairs)
      return;
    mlir::Value isHalf = code.both(isPart, code.atMost(code.add(elementOf(last), code.index(1)), operand.end[depth]));
    isHalf = code.both(isHalf, code.atMost(code.add(last, code.index(1)), kSteps));
    code.ifThen(isHalf, [&] { code.store(partOfStep(offset, last), target(last), code.accBytes()); });
  }

  void rowsAlong(mlir::Value line, mlir::Value panel);
  void rowsAcross(mlir::Value line, mlir::Value panel);
  void columnsAlong(mlir::Value line, mlir::Value panel);
  void columnsAcross(mlir::Value line, mlir::Value panel);
  mlir::Value target(mlir::Value panel, mlir::Value step, int64_t column) {
    return code.at(code.at(panel, code.plan.shape.accType, code.mul(step, code.index(code.plan.nr))),
                   code.plan.shape.accType, column);
  }
};

} // namespace kpkg::lower::cpu
