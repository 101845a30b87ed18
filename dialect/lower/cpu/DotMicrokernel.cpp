// Builds the microkernel of a dot: a register tile of accumulators over one row panel and one column panel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scheme follows Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008) and BLIS. A tile
// of mr x nr accumulators stays in registers. Each step reads nr elements of B as vectors and multiplies them by mr
// elements of A, one at a time.
#include "dialect/lower/cpu/DotCode.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace kpkg::lower::cpu {

/// Adds the products of kUnroll steps to `accumulators`, which hold `vectors` values for each row.
static void multiplySteps(DotCode &code, Value rows, Value columns, int64_t vectors,
                          MutableArrayRef<Value> accumulators) {
  const DotPlan &plan = code.plan;
  int64_t alignment = code.accBytes();
  Type type = plan.shape.accType;
  VectorType vector = code.stepsOf(plan.lanes);
  SmallVector<Value> rowVectors;
  if (!plan.unit.broadcastFromMemory)
    for (int64_t r = 0; r < plan.mr; ++r)
      rowVectors.push_back(
          code.load(code.vectorOf(plan.kUnroll), code.at(rows, type, r * plan.kUnroll), alignment * plan.kUnroll));
  for (int64_t step = 0; step < plan.kUnroll; ++step) {
    SmallVector<Value> b;
    for (int64_t j = 0; j < vectors; ++j)
      b.push_back(code.load(vector, code.at(columns, type, step * plan.nr + j * plan.lanes), plan.unit.vectorBytes));
    for (int64_t r = 0; r < plan.mr; ++r) {
      Value element = plan.unit.broadcastFromMemory
                          ? code.load(code.stepType(), code.at(rows, type, r * plan.kUnroll + step), alignment)
                          : Value(vector::ExtractOp::create(code.b, rowVectors[r], step));
      Value a = vector::BroadcastOp::create(code.b, vector, element);
      for (int64_t j = 0; j < vectors; ++j) {
        Value &accumulator = accumulators[r * vectors + j];
        accumulator = code.multiplyAdd(a, b[j], accumulator);
      }
    }
  }
}

void multiplyPanels(DotCode &code, Value rowPanel, Value columnPanel, int64_t vectors, Value kSteps, Value acc,
                    int64_t accStride, Value row, Value column, Value edge) {
  const DotPlan &plan = code.plan;
  ImplicitLocOpBuilder &b = code.b;
  int64_t width = vectors * plan.lanes, alignment = code.accBytes();
  Type type = plan.shape.accType;
  VectorType vector = code.vectorOf(plan.lanes);
  Value corner = code.at(acc, type, code.add(code.mul(row, code.index(accStride)), column));
  for (int64_t r = 0; r < plan.mr; ++r)
    LLVM::Prefetch::create(b, code.at(corner, type, r * accStride), /*rw=*/1, /*hint=*/3, /*cache=*/1);

  // The sum starts at zero and is added to the accumulator once at the end. Sums over blocks of k have a smaller
  // rounding error than one long chain.
  Value zero = arith::ConstantOp::create(b, DenseElementsAttr::get(vector, b.getFloatAttr(type, 0)));
  SmallVector<Value> sums(plan.mr * vectors, zero);
  auto loop = scf::ForOp::create(b, code.index(0), kSteps, code.index(plan.kUnroll), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value k = loop.getInductionVar();
    SmallVector<Value> accumulators(loop.getRegionIterArgs());
    multiplySteps(code, code.at(rowPanel, type, code.mul(k, code.index(plan.mr))),
                  code.at(columnPanel, type, code.mul(k, code.index(plan.nr))), vectors, accumulators);
    scf::YieldOp::create(b, accumulators);
  }
  auto addWhole = [&] {
    for (int64_t r = 0; r < plan.mr; ++r)
      for (int64_t j = 0; j < vectors; ++j) {
        Value pointer = code.at(corner, type, r * accStride + j * plan.lanes);
        Value old = code.load(vector, pointer, alignment);
        code.store(arith::AddFOp::create(b, old, loop.getResult(r * vectors + j)), pointer, alignment);
      }
  };
  if (plan.shape.m % plan.mr == 0 && plan.shape.n % plan.nr == 0)
    return addWhole();
  auto addPart = [&] {
    for (int64_t r = 0; r < plan.mr; ++r)
      for (int64_t j = 0; j < vectors; ++j)
        code.store(loop.getResult(r * vectors + j), code.at(edge, type, r * plan.nr + j * plan.lanes),
                   plan.unit.vectorBytes);
    Value rows = code.min(code.index(plan.mr), code.sub(code.index(plan.shape.m), row));
    Value columns = code.min(code.index(width), code.sub(code.index(plan.shape.n), column));
    code.forEach(code.index(0), rows, 1, [&](Value r) {
      code.forEach(code.index(0), columns, 1, [&](Value j) {
        Value pointer = code.at(corner, type, code.add(code.mul(r, code.index(accStride)), j));
        Value part = code.load(type, code.at(edge, type, code.add(code.mul(r, code.index(plan.nr)), j)), alignment);
        code.store(arith::AddFOp::create(b, code.load(type, pointer, alignment), part), pointer, alignment);
      });
    });
  };
  Value whole = code.both(code.atMost(code.add(row, code.index(plan.mr)), code.index(plan.shape.m)),
                          code.atMost(code.add(column, code.index(width)), code.index(plan.shape.n)));
  code.ifElse(whole, addWhole, addPart);
}

} // namespace kpkg::lower::cpu
