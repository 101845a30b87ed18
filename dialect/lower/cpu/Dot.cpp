// Builds the loops around packing and the microkernel of a dot.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/Dot.h"
#include "dialect/lower/cpu/DotCode.h"

using namespace mlir;

namespace kpkg::lower::cpu {

/// Up to this many rows, copying an element of B costs more than it saves.
static constexpr int64_t rowsInPlace = 16;

static BoundedOperand bound(DotCode &code, const DotOperand &operand, std::array<int64_t, 2> extent) {
  BoundedOperand result{operand.base, operand.stride, {}, {}, operand.elementType, operand.lines, operand.nothing};
  for (int d = 0; d < 2; ++d) {
    result.begin[d] = operand.begin[d] ? code.max(code.index(0), operand.begin[d]) : code.index(0);
    result.end[d] = code.index(extent[d]);
    if (operand.end[d])
      result.end[d] = code.min(result.end[d], operand.end[d]);
  }
  return result;
}

static bool mayBeOne(Value stride) { return getConstantIntValue(stride).value_or(1) == 1; }

/// Returns the steps of the depth. It ends where either operand ends; beyond it, one of them reads as zero.
static Value depthSteps(DotCode &code, const BoundedOperand &a, const BoundedOperand &b) {
  int64_t width = code.plan.width();
  return code.quotient(code.max(code.add(code.min(a.end[1], b.end[0]), code.index(width - 1)), code.index(0)), width);
}

/// Emits `multiply(panel, column, vectors)` for each panel of `columns` packed columns. The last one may have fewer
/// vectors.
static void forEachColumnPanel(DotCode &code, Value packedColumns, Value columns,
                               llvm::function_ref<void(Value, Value, int64_t)> multiply) {
  const DotPlan &plan = code.plan;
  code.forEach(code.index(0), columns, plan.nr, [&](Value column) {
    Value panel = code.at(packedColumns, plan.shape.accType, code.mul(column, code.index(plan.kc)));
    int64_t all = plan.nr / plan.lanes;
    if (all == 1)
      return multiply(panel, column, 1);
    Value isNarrow = code.atMost(columns, code.add(column, code.index(plan.lanes)));
    code.ifElse(isNarrow, [&] { multiply(panel, column, 1); }, [&] { multiply(panel, column, all); });
  });
}

/// Multiplies through packed panels.
static void multiplyPacked(DotCode &code, const BoundedOperand &a, const BoundedOperand &b, Value acc,
                           int64_t accStride, Value scratch) {
  const DotPlan &plan = code.plan;
  DotScratch layout = plan.scratch();
  Type type = plan.shape.accType, byte = code.b.getI8Type();
  Value packedRows = scratch, packedColumns = code.at(scratch, byte, layout.columns),
        edge = code.at(scratch, byte, layout.edge);
  Value depth = depthSteps(code, a, b);

  code.forEach(code.index(0), depth, plan.kc, [&](Value k) {
    Value kSteps = code.roundUp(code.min(code.index(plan.kc), code.sub(depth, k)), plan.kUnroll);
    code.forEach(code.index(0), a.end[0], plan.mc, [&](Value row) {
      Value rows = code.min(code.index(plan.mc), code.sub(a.end[0], row));
      (a.lines ? packRowLines : packRows)(code, a, row, rows, k, kSteps, packedRows);
      code.forEach(code.index(0), b.end[1], plan.nc, [&](Value column) {
        Value columns = code.min(code.index(plan.nc), code.sub(b.end[1], column));
        (b.lines ? packColumnLines : packColumns)(code, b, column, columns, k, kSteps, packedColumns);
        forEachColumnPanel(code, packedColumns, columns, [&](Value panel, Value panelColumn, int64_t vectors) {
          code.forEach(code.index(0), rows, plan.mr, [&](Value panelRow) {
            Value rowPanel = code.at(packedRows, type, code.mul(panelRow, code.index(plan.kc)));
            multiplyPanels(code, rowPanel, panel, vectors, kSteps, acc, accStride, code.add(row, panelRow),
                           code.add(column, panelColumn), edge);
          });
        });
      });
    });
  });
}

/// Multiplies through packed panels by the tiles of AMX. A panel of rows is packed just before it is multiplied, while
/// it is in the L1 cache. The tiles are faster than copies to the L2 cache and back.
static void multiplyByTiles(DotCode &code, const BoundedOperand &a, const BoundedOperand &b, Value acc,
                            int64_t accStride, Value scratch) {
  const DotPlan &plan = code.plan;
  DotScratch layout = plan.scratch();
  Type byte = code.b.getI8Type();
  Value packedColumns = code.at(scratch, byte, layout.columns), edge = code.at(scratch, byte, layout.edge);
  Value depth = depthSteps(code, a, b);

  code.forEach(code.index(0), depth, plan.kc, [&](Value k) {
    Value kSteps = code.roundUp(code.min(code.index(plan.kc), code.sub(depth, k)), plan.kUnroll);
    code.forEach(code.index(0), b.end[1], plan.nc, [&](Value column) {
      Value columns = code.min(code.index(plan.nc), code.sub(b.end[1], column));
      (b.lines ? packColumnLines : packColumns)(code, b, column, columns, k, kSteps, packedColumns);
      code.forEach(code.index(0), a.end[0], plan.mr, [&](Value row) {
        Value rows = code.min(code.index(plan.mr), code.sub(a.end[0], row));
        (a.lines ? packRowLines : packRows)(code, a, row, rows, k, kSteps, scratch);
        forEachColumnPanel(code, packedColumns, columns, [&](Value panel, Value panelColumn, int64_t vectors) {
          multiplyTiles(code, scratch, panel, vectors, kSteps, acc, accStride, row, code.add(column, panelColumn),
                        edge);
        });
      });
    });
  });
}

void buildDot(OpBuilder &builder, Location loc, const DotPlan &plan, const DotOperand &aOperand,
              const DotOperand &bOperand, Value acc, int64_t accStride, Value scratch) {
  DotCode code(builder, loc, plan);
  BoundedOperand a = bound(code, aOperand, {plan.shape.m, plan.shape.k}),
                 b = bound(code, bOperand, {plan.shape.k, plan.shape.n});
  auto part = [&](int64_t offset) { return code.at(scratch, code.b.getI8Type(), offset); };
  DotScratch layout = plan.scratch();
  auto packed = [&] {
    if (!plan.usesTiles())
      return multiplyPacked(code, a, b, acc, accStride, scratch);
    withTiles(code, part(layout.configuration), [&] { multiplyByTiles(code, a, b, acc, accStride, scratch); });
  };
  if (a.lines || b.lines)
    return packed();
  // True for few rows, when both operands begin at index 0.
  Value isPlain = code.atMost(a.end[0], code.index(rowsInPlace));
  for (const BoundedOperand *operand : {&a, &b})
    for (Value begin : operand->begin)
      isPlain = code.both(isPlain, code.atMost(begin, code.index(0)));
  Value depth = code.max(code.min(a.end[1], b.end[0]), code.index(0));
  auto isMultiple = [&](Value x, int64_t divisor) {
    Value rest = arith::RemUIOp::create(code.b, code.max(x, code.index(0)), code.index(divisor));
    return arith::CmpIOp::create(code.b, arith::CmpIPredicate::eq, rest, code.index(0));
  };
  auto across = [&] {
    if (plan.shape.pairs || !mayBeOne(b.stride[1]))
      return packed();
    Value fits = code.both(isPlain, code.isOne(b.stride[1]));
    if (!code.hasMasks(b.elementType))
      fits = code.both(fits, isMultiple(b.end[1], plan.nr));
    code.ifElse(fits, [&] { multiplyAcross(code, a, b, depth, acc, accStride); }, packed);
  };
  if (!mayBeOne(a.stride[1]) || !mayBeOne(b.stride[0]))
    return across();
  Value fits = code.both(isPlain, code.both(code.isOne(a.stride[1]), code.isOne(b.stride[0])));
  if (!code.hasMasks(a.elementType) || !code.hasMasks(b.elementType))
    fits = code.both(fits, isMultiple(depth, plan.lanes * plan.width()));
  auto along = [&] {
    auto byVectors = [&] { multiplyAlong(code, a, b, depth, acc, accStride); };
    if (!plan.usesTiles() || plan.nr != kTilesAlong * plan.lanes)
      return byVectors();
    Value areWhole =
        code.both(isMultiple(depth, plan.kUnroll * plan.width()), isMultiple(b.end[1], kTilesAlong * kTileRows));
    areWhole = code.both(areWhole, code.atMost(code.index(1), a.end[0]));
    auto byTiles = [&] {
      withTiles(code, part(layout.configuration), [&] {
        multiplyTilesAlong(code, a, b, depth, acc, accStride, part(layout.columns), part(layout.edge));
      });
    };
    code.ifElse(areWhole, byTiles, byVectors);
  };
  code.ifElse(fits, along, across);
}

} // namespace kpkg::lower::cpu
