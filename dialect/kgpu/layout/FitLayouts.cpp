// Inserts conversions at ops whose operands and results have layouts of different classes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/layout/FitLayouts.h"
#include "dialect/kgpu/analysis/PartLayouts.h"
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/kgpu/ir/ConvertLayout.h"
#include "dialect/layout/Algebra.h"
#include "dialect/layout/Subdivision.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::kgpu {

using layout::Layout;

namespace {
LogicalResult fitReduction(Operation *op, Value from, unsigned axis) {
  llvm::Expected<Layout> given = layout::slice(layoutOf(from), axis);
  if (!given)
    return op->emitOpError() << "cannot be laid out: " << llvm::toString(given.takeError());
  for (OpResult result : op->getResults())
    giveLayout(result, *given);
  return success();
}

/// Converts the words, such that threads hold all fields of their words. Words are smaller than their fields. Where the
/// layout of the fields divides words among threads, the fields are converted.
void fitUnpack(tile::UnpackOp op) {
  const Layout &wanted = layoutOf(op.getResult());
  if (auto words = layout::coarsen(wanted, wanted.rank() - 1, op.getFields()))
    return convertOperand(op.getValueMutable(), *words);
  const Layout &given = layoutOf(op.getValue());
  giveLayout(cast<OpResult>(op.getResult()), layout::subdivide(given, given.rank() - 1, op.getFields()));
}

/// Converts the result, or else the operand, such that threads keep their elements. An operand of which little is taken
/// is left: kgpu-expand-cvt moves the elements of the part alone.
void fitExtract(tile::ExtractOp op) {
  auto whole = cast<RankedTensorType>(op.getValue().getType()), part = cast<RankedTensorType>(op.getType());
  if (auto given = layout::extract(layoutOf(op.getValue()), rangesOf(op)))
    return giveLayout(cast<OpResult>(op.getResult()), *given);
  if (2 * part.getNumElements() < whole.getNumElements())
    return;
  if (auto needed = enclosing(layoutOf(op.getResult()), rangesOf(op)))
    convertOperand(op.getValueMutable(), *needed);
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
  for (auto [part, layout] : llvm::zip_equal(op->getOpOperands(), *layouts))
    convertOperand(part, layout);
}

LogicalResult fit(Operation *op, ArrayRef<StreamedDot> products, unsigned consumers) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<tile::ReduceOp, tile::ArgReduceOp>(
          [&](auto reduce) { return fitReduction(op, reduce.getValue(), reduce.getAxis()); })
      .Case([&](tile::CombineOp combine) { return fitReduction(op, combine.getInputs().front(), combine.getAxis()); })
      .Case([&](tile::BroadcastOp broadcast) {
        Value small = broadcast.getValue(), large = broadcast.getResult();
        llvm::Expected<Layout> needed = sliced(layoutOf(large), shapeOf(small), shapeOf(large));
        if (!needed)
          return LogicalResult(op->emitOpError() << "cannot be laid out: " << llvm::toString(needed.takeError()));
        convertOperand(broadcast.getValueMutable(), *needed);
        return success();
      })
      .Case([&](tile::ReshapeOp reshape) {
        Value from = reshape.getValue(), to = reshape.getResult();
        if (auto forward = llvm::expectedToOptional(layout::reshape(layoutOf(from), shapeOf(from), shapeOf(to)))) {
          giveLayout(cast<OpResult>(to), *forward);
          return success();
        }
        auto backward = llvm::expectedToOptional(layout::reshape(layoutOf(to), shapeOf(to), shapeOf(from)));
        if (backward) // else kgpu-expand-cvt moves the elements
          convertOperand(reshape.getValueMutable(), *backward);
        return success();
      })
      .Case([&](tile::UnpackOp unpack) {
        fitUnpack(unpack);
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
            }))
          convertOperand(dot.getLhsMutable(), wgmmaLeftOperand(dot.getLhs(), consumers));
        if (Value positions = dot.getPositions())
          convertOperand(dot.getPositionsMutable()[0], wgmmaPositions(shapeOf(positions), consumers));
        return success();
      })
      .Case([&](tile::ScatterOp scatter) {
        convertOperand(scatter.getValueMutable(), layoutOf(scatter.getIndices().front()));
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

LogicalResult fitLayouts(tile::KernelOp kernel, ArrayRef<StreamedDot> products, unsigned consumers) {
  return failure(kernel.walk([&](Operation *op) { return WalkResult(fit(op, products, consumers)); }).wasInterrupted());
}

} // namespace kpkg::kgpu
