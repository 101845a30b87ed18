// Expands matrix products into FMAs: rank-1 updates of the accumulator by operands in shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %d = tile.dot %a, %b, %c : tensor<64x16xbf16, #a>, tensor<16x64xbf16, #b>, tensor<64x64xf32, #acc>
// After:  %x = %a in f32, transposed, as tensor<16x64x1xf32>; %y = %b in f32 as tensor<16x1x64xf32>
//         kgpu.local_store %x, %left : !kgpu.smem<16x64x1xf32>;  kgpu.local_store %y, %right : !kgpu.smem<16x1x64xf32>
//         %d = scf.for %k = 0 to 16 step 8 iter_args(%s = %c) {   // its body eight times
//           %column = kgpu.local_load (kgpu.slot %left[%k]) : tensor<64x1xf32>
//           %row = kgpu.local_load (kgpu.slot %right[%k])
//           %s = math.fma (broadcast %column), (broadcast %row), %s : tensor<64x64xf32, #acc> }
//
// On entry: every tile has a layout.
// On exit: no tile.dot is left. Operands are widened to the accumulator's type first. That changes nothing, because
// products of narrow floats are exact in this type. Barriers are inserted later.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/expand/SharedTiles.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/layout/Algebra.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUEXPANDDOTS
#include "dialect/kgpu/Passes.h.inc"

namespace {
using layout::Layout;

constexpr int64_t kUnroll = 8;

class Expansion {
public:
  explicit Expansion(tile::DotOp op) : op(op), builder(op), loc(op.getLoc()) {}

  LogicalResult run() {
    auto accumulator = cast<RankedTensorType>(op.getAccumulator().getType());
    int64_t rank = accumulator.getRank(), steps = cast<RankedTensorType>(op.getLhs().getType()).getDimSize(rank - 1);
    FailureOr<Value> left = stage(op.getLhs(), rank - 1, /*newDim=*/rank);
    FailureOr<Value> right = stage(op.getRhs(), rank - 2, /*newDim=*/rank - 1);
    if (failed(left) || failed(right))
      return failure();
    int64_t unroll = kUnroll;
    while (steps % unroll != 0)
      unroll /= 2;
    Value first = constant(0), end = constant(steps), step = constant(unroll);
    auto loop = scf::ForOp::create(builder, loc, first, end, step, ValueRange{op.getAccumulator()});
    builder.setInsertionPointToStart(loop.getBody());
    Value sum = loop.getRegionIterArg(0);
    for (int64_t i = 0; i < unroll; ++i) {
      Value index = i == 0 ? Value(loop.getInductionVar())
                           : arith::AddIOp::create(builder, loc, loop.getInductionVar(), constant(i)).getResult();
      Value column = operand(*left, index, rank - 1), row = operand(*right, index, rank - 2);
      if (!column || !row)
        return failure();
      sum = multiplyAdd(column, row, sum);
    }
    scf::YieldOp::create(builder, loc, sum);
    builder.replaceOp(op, loop.getResult(0));
    return success();
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }

  /// Stores the operand to a buffer, with K (`depth`) as the first dimension and a new dimension of extent 1.
  FailureOr<Value> stage(Value value, unsigned depth, unsigned newDim) {
    auto type = cast<RankedTensorType>(value.getType());
    Type wide = cast<RankedTensorType>(op.getType()).getElementType();
    Layout layout = layoutOf(value);
    if (type.getElementType() != wide) {
      Type widened = withLayout(RankedTensorType::get(type.getShape(), wide), layout);
      value = isa<FloatType>(wide) ? arith::ExtFOp::create(builder, loc, widened, value).getResult()
                                   : arith::ExtSIOp::create(builder, loc, widened, value).getResult();
    }
    SmallVector<int64_t> permutation = {depth};
    SmallVector<int64_t> shape = {type.getDimSize(depth)};
    for (unsigned dim = 0; dim < type.getRank(); ++dim)
      if (dim != depth) {
        permutation.push_back(dim);
        shape.push_back(type.getDimSize(dim));
      }
    if (depth != 0) {
      layout = layout::permute(layout, SmallVector<unsigned>(permutation.begin(), permutation.end()));
      value = tile::PermuteOp::create(builder, loc, withLayout(RankedTensorType::get(shape, wide), layout), value,
                                      permutation);
    }
    shape.insert(shape.begin() + newDim, 1);
    layout = layout::insertDim(layout, newDim);
    value = tile::ReshapeOp::create(builder, loc, withLayout(RankedTensorType::get(shape, wide), layout), value);
    return storedTile(builder, loc, value);
  }

  /// Returns element `index` of the buffer, broadcast along `dim` of the accumulator; null after an error.
  Value operand(Value buffer, Value index, unsigned dim) {
    auto type = cast<SharedType>(buffer.getType());
    ArrayRef<int64_t> shape = type.getShape().drop_front();
    llvm::Expected<Layout> layout = layout::slice(layoutOf(op.getAccumulator()), dim);
    if (!layout) {
      op.emitOpError() << "cannot be expanded: " << llvm::toString(layout.takeError());
      return {};
    }
    Value slot = SlotOp::create(builder, loc, SharedType::get(shape, type.getElementType()), buffer, index);
    Type loaded = withLayout(RankedTensorType::get(shape, type.getElementType()), *layout);
    Value value = LocalLoadOp::create(builder, loc, loaded, slot);
    return tile::BroadcastOp::create(builder, loc, op.getType(), value);
  }

  Value multiplyAdd(Value left, Value right, Value sum) {
    if (isa<FloatType>(getElementTypeOrSelf(sum.getType())))
      return math::FmaOp::create(builder, loc, left, right, sum);
    return arith::AddIOp::create(builder, loc, arith::MulIOp::create(builder, loc, left, right), sum);
  }

  tile::DotOp op;
  IRRewriter builder;
  Location loc;
};

struct ExpandDots final : impl::KgpuExpandDotsBase<ExpandDots> {
  void runOnOperation() override {
    if (failed(forEachOp<tile::DotOp>(getOperation(), [](tile::DotOp op) { return Expansion(op).run(); })))
      signalPassFailure();
  }
};
} // namespace
} // namespace kpkg::kgpu
