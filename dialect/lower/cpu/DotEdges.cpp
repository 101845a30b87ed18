// Packs the parts of dot operands that end within a panel, by masked vector loads instead of a test for each element.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/DotCode.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace kpkg::lower::cpu {

Value firstLanes(DotCode &code, Value count, int64_t lanes) {
  SmallVector<int64_t> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.push_back(lane);
  VectorType type = VectorType::get(lanes, code.b.getI64Type());
  Value lane = arith::ConstantOp::create(code.b, DenseElementsAttr::get(type, ArrayRef<int64_t>(numbers)));
  Value end = arith::IndexCastOp::create(code.b, code.b.getI64Type(), count);
  return arith::CmpIOp::create(code.b, arith::CmpIPredicate::slt, lane,
                               vector::BroadcastOp::create(code.b, type, end).getResult());
}

Value loadFirstSteps(DotCode &code, Value pointer, Type element, Value mask, int64_t lanes) {
  if (!code.plan.shape.pairs)
    return code.converted(code.loadMasked(pointer, element, mask, Value()), element);
  Value halves = code.loadMasked(pointer, element, mask, Value());
  return LLVM::BitcastOp::create(code.b, code.stepsOf(lanes), halves);
}

namespace {

/// Loads elements of an operand that begins before them, with zeros beyond its end.
class Edge {
public:
  /// Takes dimension `depth` of the operand as the depth.
  Edge(DotCode &code, const BoundedOperand &operand, int depth) : code(code), operand(operand), depth(depth) {}

  /// Loads `lanes` steps of line `line` from `step` on. Elements of the line are contiguous.
  Value steps(Value line, Value step, int64_t lanes) {
    int64_t width = code.plan.width();
    Value first = code.mul(step, code.index(width));
    Value mask = maskOf(line, 1 - depth, code.sub(operand.end[depth], first), lanes * width);
    return loadFirstSteps(code, addressOf(line, first), operand.elementType, mask, lanes);
  }

  /// Loads step `step` of `lanes` contiguous lines from `line` on.
  Value lines(Value line, Value step, int64_t lanes) {
    Value first = code.mul(step, code.index(code.plan.width()));
    auto load = [&](Value element) {
      Value mask = maskOf(element, depth, code.sub(operand.end[1 - depth], line), lanes);
      return code.loadMasked(addressOf(line, element), operand.elementType, mask, Value());
    };
    if (code.plan.shape.pairs)
      return code.pairOf(load(first), load(code.add(first, code.index(1))));
    return code.converted(load(first), operand.elementType);
  }

private:
  DotCode &code;
  const BoundedOperand &operand;
  int depth;

  /// Returns the mask of the first `count` lanes if `index` is inside dimension `dim`, else an empty mask.
  Value maskOf(Value index, int dim, Value count, int64_t lanes) {
    Value inside = arith::CmpIOp::create(code.b, arith::CmpIPredicate::slt, index, operand.end[dim]);
    return firstLanes(code, arith::SelectOp::create(code.b, inside, count, code.index(0)), lanes);
  }

  /// Returns the address of an element, or of the last one inside. Processors are slow at invalid
  /// addresses, even if masked off.
  Value addressOf(Value line, Value element) {
    Value index[2] = {line, line};
    index[depth] = element;
    Value offset = code.index(0);
    for (int dim = 0; dim < 2; ++dim) {
      Value last = code.max(code.sub(operand.end[dim], code.index(1)), code.index(0));
      offset = code.add(offset, code.mul(code.min(index[dim], last), operand.stride[dim]));
    }
    return code.at(operand.base, operand.elementType, offset);
  }
};

} // namespace

void packRowEdge(DotCode &code, const BoundedOperand &a, Value alongDepth, Value first, Value k, Value from,
                 Value blocks, Value panel) {
  const DotPlan &plan = code.plan;
  int64_t unroll = plan.kUnroll, mr = plan.mr;
  Type type = plan.shape.accType;
  Edge edge(code, a, 1);
  code.forEach(from, blocks, 1, [&](Value q) {
    Value step = code.add(k, code.mul(q, code.index(unroll)));
    Value target = code.at(panel, type, code.mul(q, code.index(mr * unroll)));
    auto copy = [&] {
      code.forEach(code.index(0), code.index(mr), 1, [&](Value r) {
        code.store(edge.steps(code.add(first, r), step, unroll), code.at(target, type, code.mul(r, code.index(unroll))),
                   code.accBytes() * unroll);
      });
    };
    auto copyTransposed = [&] {
      for (int64_t r = 0; r < mr; r += unroll) {
        SmallVector<Value> lines;
        for (int64_t i = 0; i < unroll; ++i)
          lines.push_back(edge.lines(code.add(first, code.index(r)), code.add(step, code.index(i)), unroll));
        lines = transpose(code, lines);
        for (int64_t i = 0; i < std::min(unroll, mr - r); ++i)
          code.store(lines[i], code.at(target, type, (r + i) * unroll), code.accBytes() * unroll);
      }
    };
    code.ifElse(alongDepth, copy, copyTransposed);
  });
}

void packColumnEdge(DotCode &code, const BoundedOperand &b, Value alongColumns, Value first, Value k, Value from,
                    Value kSteps, Value panel) {
  const DotPlan &plan = code.plan;
  int64_t nr = plan.nr, lanes = plan.lanes, square = plan.kUnroll;
  Type type = plan.shape.accType;
  Edge edge(code, b, 0);
  auto target = [&](Value step, Value j) { return code.at(panel, type, code.add(code.mul(step, code.index(nr)), j)); };
  auto copy = [&] {
    code.forEach(from, kSteps, 1, [&](Value step) {
      for (int64_t j = 0; j < nr; j += lanes)
        code.store(edge.lines(code.add(first, code.index(j)), code.add(k, step), lanes), target(step, code.index(j)),
                   plan.unit.vectorBytes);
    });
  };
  auto copyTransposed = [&] {
    code.forEach(code.index(0), code.index(nr), square, [&](Value j) {
      code.forEach(from, kSteps, square, [&](Value step) {
        SmallVector<Value> lines;
        for (int64_t i = 0; i < square; ++i)
          lines.push_back(edge.steps(code.add(code.add(first, j), code.index(i)), code.add(k, step), square));
        lines = transpose(code, lines);
        for (int64_t i = 0; i < square; ++i)
          code.store(lines[i], code.at(target(step, j), type, i * nr), code.accBytes() * square);
      });
    });
  };
  code.ifElse(alongColumns, copy, copyTransposed);
}

} // namespace kpkg::lower::cpu
