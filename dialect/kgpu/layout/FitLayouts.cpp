// Inserts conversions at ops whose operands and results have layouts of different classes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/layout/FitLayouts.h"
#include "dialect/kgpu/analysis/PartLayouts.h"
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/kgpu/ir/ConvertLayout.h"
#include "dialect/layout/Algebra.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::kgpu {

using layout::Layout;

namespace {
ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

LogicalResult fitReduction(Operation *op, Value from, unsigned axis) {
  llvm::Expected<Layout> given = layout::slice(layoutOf(from), axis);
  if (!given)
    return op->emitOpError() << "cannot be laid out: " << llvm::toString(given.takeError());
  for (OpResult result : op->getResults())
    giveLayout(result, *given);
  return success();
}

/// Converts the result, or else the operand, such that threads keep their elements. An operand of which little is taken
/// is left: kgpu-expand-cvt moves the elements of the part alone.
void fitExtract(tile::ExtractOp op) {
  auto whole = cast<RankedTensorType>(op.getValue().getType()), part = cast<RankedTensorType>(op.getType());
  if (auto given = layout::extract(layoutOf(op.getValue()), rangesOf(op)))
    return giveLayout(cast<OpResult>(op.getResult()), *given);
  if (2 * part.getNumElements() < whole.getNumElements())
    return;
  if (auto needed = enclosing(layoutOf(op.getResult()), rangesOf(op))) {
    OpBuilder builder(op);
    op.getValueMutable().assign(converted(builder, op.getLoc(), op.getValue(), *needed));
  }
}

/// Converts the parts, or else the result, such that threads keep their elements. Where that is impossible,
/// kgpu-expand-cvt moves them.
void fitJoin(tile::JoinOp op) {
  std::optional<std::vector<Layout>> layouts = layoutsOfParts(op, layoutOf(op.getResult()));
  if (!layouts) {
    auto whole = enclosing(layoutOf(op.getParts().front()), rangesOf(op).front());
    layouts = whole ? layoutsOfParts(op, *whole) : std::nullopt;
    if (!layouts)
      return;
    giveLayout(cast<OpResult>(op.getResult()), *whole);
  }
  OpBuilder builder(op);
  for (auto [part, layout] : llvm::zip_equal(op->getOpOperands(), *layouts))
    part.set(converted(builder, op.getLoc(), part.get(), layout));
}

LogicalResult fit(Operation *op, ArrayRef<StreamedDot> products, unsigned consumers) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tile::ReduceOp reduce) { return fitReduction(op, reduce.getValue(), reduce.getAxis()); })
      .Case([&](tile::ArgReduceOp reduce) { return fitReduction(op, reduce.getValue(), reduce.getAxis()); })
      .Case([&](tile::CombineOp combine) { return fitReduction(op, combine.getInputs().front(), combine.getAxis()); })
      .Case([&](tile::BroadcastOp broadcast) {
        Value small = broadcast.getValue(), large = broadcast.getResult();
        llvm::Expected<Layout> needed = sliced(layoutOf(large), shapeOf(small), shapeOf(large));
        if (!needed)
          return LogicalResult(op->emitOpError() << "cannot be laid out: " << llvm::toString(needed.takeError()));
        OpBuilder builder(op);
        broadcast.getValueMutable().assign(converted(builder, op->getLoc(), small, *needed));
        return success();
      })
      .Case([&](tile::ReshapeOp reshape) {
        Value from = reshape.getValue(), to = reshape.getResult();
        if (auto forward = llvm::expectedToOptional(layout::reshape(layoutOf(from), shapeOf(from), shapeOf(to)))) {
          giveLayout(cast<OpResult>(to), *forward);
          return success();
        }
        auto backward = llvm::expectedToOptional(layout::reshape(layoutOf(to), shapeOf(to), shapeOf(from)));
        if (!backward)
          return success(); // kgpu-expand-cvt moves the elements
        OpBuilder builder(op);
        reshape.getValueMutable().assign(converted(builder, op->getLoc(), from, *backward));
        return success();
      })
      .Case([&](tile::ExtractOp extract) {
        fitExtract(extract);
        return success();
      })
      .Case([&](tile::JoinOp join) {
        fitJoin(join);
        return success();
      })
      .Case([&](tile::DotOp dot) {
        // wgmma requires a layout of a left operand in registers; operands in shared memory have none.
        if (consumers != 0 && llvm::any_of(products, [&](const StreamedDot &product) {
              return product.dot == dot && !product.lhs && !product.shared;
            })) {
          OpBuilder builder(op);
          dot.getLhsMutable().assign(
              converted(builder, op->getLoc(), dot.getLhs(), leftOperand(dot.getLhs(), consumers)));
        }
        if (Value positions = dot.getPositions()) {
          OpBuilder builder(op);
          dot.getPositionsMutable().assign(
              converted(builder, op->getLoc(), positions, wgmmaPositions(shapeOf(positions), consumers)));
        }
        return success();
      })
      .Case([&](tile::ScatterOp scatter) {
        OpBuilder builder(op);
        scatter.getValueMutable().assign(
            converted(builder, op->getLoc(), scatter.getValue(), layoutOf(scatter.getIndices().front())));
        return success();
      })
      .Case([&](tile::PermuteOp permute) {
        giveLayout(
            cast<OpResult>(permute.getResult()),
            layout::permute(layoutOf(permute.getValue()),
                            SmallVector<unsigned>(permute.getPermutation().begin(), permute.getPermutation().end())));
        return success();
      })
      .Default(success());
}
} // namespace

llvm::Expected<Layout> sliced(Layout layout, ArrayRef<int64_t> small, ArrayRef<int64_t> large) {
  for (unsigned dim = 0; dim < small.size(); ++dim)
    if (small[dim] == 1 && large[dim] != 1) {
      llvm::Expected<Layout> next = layout::slice(layout, dim);
      if (!next)
        return next;
      layout = *next;
    }
  return layout;
}

Layout leftOperand(Value value, unsigned consumers) {
  return wgmmaLeftOperand(shapeOf(value), elementBytes(getElementTypeOrSelf(value.getType())), consumers);
}

LogicalResult fitLayouts(tile::KernelOp kernel, ArrayRef<StreamedDot> products, unsigned consumers) {
  return failure(kernel.walk([&](Operation *op) { return WalkResult(fit(op, products, consumers)); }).wasInterrupted());
}

} // namespace kpkg::kgpu
