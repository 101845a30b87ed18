// Gives the shared memory of kernels at thread level shadow memory, and counts their barriers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/transforms/ThreadShadows.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kpkg::tile {

namespace {

constexpr int64_t lanes = 32;
/// The fields of a cell above its state: the thread + 1, the barriers of its warp, and those of its block.
constexpr int32_t laneBits = 5, threadBits = 11, warpCountBits = 20;

Value constant(OpBuilder &builder, Location loc, int64_t number) {
  return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(number));
}

Value shifted(OpBuilder &builder, Location loc, Value value, int32_t bits) {
  return arith::ShRUIOp::create(builder, loc, value, constant(builder, loc, bits));
}

Value index(OpBuilder &builder, Location loc, int64_t number) {
  return arith::ConstantIndexOp::create(builder, loc, number);
}

Value elementOf(OpBuilder &builder, Location loc, Value view, ValueRange coordinates) {
  return DropOp::create(builder, loc, view, llvm::to_vector(llvm::seq<int64_t>(coordinates.size())), coordinates);
}

Value loadCount(OpBuilder &builder, Location loc, Value counts, Value number) {
  Value zero = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(0));
  return LoadOp::create(builder, loc, builder.getI64Type(), elementOf(builder, loc, counts, number), ValueRange(),
                        zero);
}

/// Lets one thread of the scope increment a count, and the others wait for it.
void increment(OpBuilder &builder, Location loc, Value counts, ThreadScope scope) {
  Value thread = ThreadIdOp::create(builder, loc, builder.getIndexType()), zero = index(builder, loc, 0);
  Value lane = thread, number = zero;
  if (scope == ThreadScope::Warp) {
    lane = arith::RemUIOp::create(builder, loc, thread, index(builder, loc, lanes));
    Value warp = arith::DivUIOp::create(builder, loc, thread, index(builder, loc, lanes));
    number = arith::AddIOp::create(builder, loc, warp, index(builder, loc, 1));
  }
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, lane, zero);
  auto branch = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value one = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(1));
    Value next = arith::AddIOp::create(builder, loc, loadCount(builder, loc, counts, number), one);
    StoreOp::create(builder, loc, next, elementOf(builder, loc, counts, number), ValueRange());
  }
  BarrierOp::create(builder, loc, scope == ThreadScope::Warp ? ThreadScope::Warp : ThreadScope::Block);
}

/// Allocates shared memory of zeros, which all threads of the block write together.
Value zeros(OpBuilder &builder, Location loc, KernelOp kernel, ArrayRef<int64_t> shape, IntegerType type) {
  Value memory = ScratchOp::create(builder, loc, shape, type);
  Value begin = ThreadIdOp::create(builder, loc, builder.getIndexType());
  Value end = index(builder, loc, ShapedType::getNumElements(shape));
  auto loop = scf::ForOp::create(builder, loc, begin, end, index(builder, loc, threadCount(kernel)));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> coordinates(shape.size());
    Value rest = loop.getInductionVar();
    for (size_t dim = shape.size(); dim-- > 0;) {
      Value extent = index(builder, loc, shape[dim]);
      coordinates[dim] = dim ? arith::RemUIOp::create(builder, loc, rest, extent).getResult() : rest;
      if (dim)
        rest = arith::DivUIOp::create(builder, loc, rest, extent);
    }
    Value zero = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, 0));
    StoreOp::create(builder, loc, zero, elementOf(builder, loc, memory, coordinates), ValueRange());
  }
  BarrierOp::create(builder, loc, ThreadScope::Block);
  return memory;
}

} // namespace

ThreadCells::ThreadCells(KernelOp kernel) {
  SmallVector<BarrierOp> barriers;
  kernel.walk([&](BarrierOp barrier) { barriers.push_back(barrier); });
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  int64_t warps = llvm::divideCeil(threadCount(kernel), lanes);
  counts = zeros(builder, kernel.getLoc(), kernel, {1 + warps}, builder.getI64Type());
  for (BarrierOp barrier : barriers) {
    builder.setInsertionPointAfter(barrier);
    increment(builder, barrier.getLoc(), counts, barrier.getScope());
  }
}

Value ThreadCells::ownCell(OpBuilder &builder, Location loc) const {
  Value thread = ThreadIdOp::create(builder, loc, builder.getIndexType()), one = index(builder, loc, 1);
  Value warp = arith::DivUIOp::create(builder, loc, thread, index(builder, loc, lanes));
  Value cell = loadCount(builder, loc, counts, index(builder, loc, 0));
  auto append = [&](Value field, int32_t bits) {
    Value above = arith::ShLIOp::create(builder, loc, cell, constant(builder, loc, bits));
    cell = arith::OrIOp::create(builder, loc, above, field);
  };
  append(loadCount(builder, loc, counts, arith::AddIOp::create(builder, loc, warp, one)), warpCountBits);
  Value number = arith::AddIOp::create(builder, loc, thread, one);
  append(arith::IndexCastOp::create(builder, loc, builder.getI64Type(), number), threadBits);
  append(constant(builder, loc, 0), stateBits);
  return cell;
}

Value ThreadCells::threadIn(OpBuilder &builder, Location loc, Value cell) {
  Value mask = constant(builder, loc, (1 << threadBits) - 1);
  Value number = arith::AndIOp::create(builder, loc, shifted(builder, loc, cell, stateBits), mask);
  return arith::SubIOp::create(builder, loc, number, constant(builder, loc, 1));
}

Value ThreadCells::areConcurrent(OpBuilder &builder, Location loc, Value a, Value b) {
  auto areEqual = [&](Value left, Value right, int32_t bits) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, shifted(builder, loc, left, bits),
                                 shifted(builder, loc, right, bits));
  };
  Value isOneWarp = areEqual(threadIn(builder, loc, a), threadIn(builder, loc, b), laneBits);
  return arith::SelectOp::create(builder, loc, isOneWarp, areEqual(a, b, stateBits + threadBits),
                                 areEqual(a, b, stateBits + threadBits + warpCountBits));
}

llvm::DenseMap<Value, Shadow> addSharedShadows(KernelOp kernel, ShadowChecks checks) {
  llvm::DenseMap<Value, Shadow> shadows;
  for (auto memory : llvm::make_early_inc_range(kernel.getBody().front().getOps<ScratchOp>())) {
    OpBuilder builder(kernel.getContext());
    builder.setInsertionPointAfter(memory);
    Shadow &shadow = shadows[memory.getResult()];
    if (checks.uninit)
      shadow.written = zeros(builder, memory.getLoc(), kernel, memory.getShape(), builder.getI32Type());
    if (checks.race)
      shadow.accesses = zeros(builder, memory.getLoc(), kernel, memory.getShape(), builder.getI64Type());
  }
  return shadows;
}

} // namespace kpkg::tile
