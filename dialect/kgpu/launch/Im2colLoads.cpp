// Converts gathers over sliding windows, as in a convolution, into im2col loads of the TMA.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %column = arith.addi (%pixel * splat %stride + splat %start), splat (%tap * %step) : tensor<128x1xi32> ...
//         %x = tile.gather %image[%number, %row, %column, %channel] fill %zero -> tensor<128x64xbf16>
// After:  %x = kgpu.im2col_load %image[%n, %h, %w, %c] in #kgpu.window<...> moved [%i, %j] -> tensor<128x64xbf16>
//         with the coordinates of the first row, without its taps
//
// On entry: a kernel with consumer warpgroups at tile level without layouts, whose tiles are not scheduled yet. The
// range of the taps is read off the loops.
// On exit: a gather that feeds a product and moves a window over a kernel argument is a kgpu.im2col_load. Other gathers
// are unchanged.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/StreamedDots.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/tile/transforms/WindowGathers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUIM2COLLOADS
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// Computes the first element of a tile as a scalar, right after the op that defines the tile.
class FirstElements {
public:
  /// Returns a scalar of the tile's element type. Returns null if it cannot be computed from the first elements of the
  /// operands.
  Value of(Value tile) {
    if (!isa<RankedTensorType>(tile.getType()))
      return tile;
    auto [known, isNew] = scalars.try_emplace(tile);
    if (!isNew)
      return known->second;
    Operation *op = tile.getDefiningOp();
    Value scalar = op ? compute(op, cast<RankedTensorType>(tile.getType()).getElementType()) : Value();
    return scalars[tile] = scalar;
  }

private:
  Value compute(Operation *op, Type element) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    if (auto splat = dyn_cast<tile::SplatOp>(op))
      return splat.getValue();
    if (isa<tile::IotaOp>(op))
      return arith::ConstantOp::create(builder, op->getLoc(), builder.getIntegerAttr(element, 0));
    if (isa<tile::BroadcastOp, tile::ReshapeOp>(op))
      return of(op->getOperand(0));
    if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1)
      return {};
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(of(operand));
      if (!operands.back())
        return {};
    }
    OperationState state(op->getLoc(), op->getName(), operands, element, op->getAttrs());
    return builder.create(state)->getResult(0);
  }

  DenseMap<Value, Value> scalars;
};

class Converter {
public:
  LogicalResult convert(tile::GatherOp gather) {
    std::optional<tile::WindowGather> found = tile::windowGather(gather);
    ResultOrWhy<TensorView> place = tensorView(gather);
    IRRewriter builder(gather);
    Location loc = gather.getLoc();
    auto index = [&](Value scalar) {
      return scalar.getType().isIndex()
                 ? scalar
                 : arith::IndexCastOp::create(builder, loc, builder.getIndexType(), scalar).getResult();
    };
    SmallVector<Value> offsets, taps;
    auto addFirst = [&](Value tile) {
      Value first = firsts.of(tile);
      if (first)
        offsets.push_back(index(first));
      return success(first);
    };
    if (failed(addFirst(found->image)))
      return gather.emitError("reads images in an order whose first one is not known");
    for (const tile::WindowDimension &dim : found->dims) {
      if (failed(addFirst(dim.pixel)))
        return gather.emitError("reads pixels of which the first one is not known");
      auto argument = [&](unsigned number) { return gather->getParentOfType<tile::KernelOp>().getArgument(number); };
      Value scaled = arith::MulIOp::create(builder, loc, offsets.back(), argument(dim.stride));
      offsets.back() = arith::AddIOp::create(builder, loc, scaled, argument(dim.start));
      taps.push_back(index(dim.offset));
    }
    Value channel;
    for (Value addend : found->channel)
      channel = channel ? arith::AddIOp::create(builder, loc, channel, index(addend)).getResult() : index(addend);
    offsets.push_back(channel ? channel : arith::ConstantIndexOp::create(builder, loc, 0).getResult());
    builder.replaceOpWithNewOp<Im2colLoadOp>(gather, gather.getType(), gather.getView(), offsets, taps, place->window);
    return success();
  }

private:
  FirstElements firsts;
};

constexpr Optimisation kIm2col{"kgpu-im2col-loads", "gather by the TMA"};

std::string whyNotIm2col(tile::GatherOp gather) {
  ResultOrWhy<TensorView> place = streamedPlace(gather);
  return place ? "no product reads the gathered tile" : place.why();
}

struct Im2colLoads final : impl::KgpuIm2colLoadsBase<Im2colLoads> {
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    SetVector<Operation *> gathers;
    for (const StreamedDot &product : getAnalysis<StreamedDots>().products)
      for (const std::optional<StreamedOperand> *operand : {&product.lhs, &product.rhs})
        if (*operand && isa<tile::GatherOp>((*operand)->load))
          gathers.insert((*operand)->load);
    Converter converter;
    for (Operation *gather : gathers) {
      remarkApplied(gather, kIm2col, "the TMA gathers the pixels of a window for a product");
      if (failed(converter.convert(cast<tile::GatherOp>(gather))))
        return signalPassFailure();
    }
    kernel.walk([](tile::GatherOp gather) { remarkRefused(gather, kIm2col, whyNotIm2col(gather)); });
    if (gathers.empty())
      markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace kpkg::kgpu
