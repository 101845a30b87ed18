// Emits scans within a warp, and adds the totals of preceding warps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/Emitter.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

FailureOr<Scanned> Emitter::scanInWarp(Operation *op, ValueRange inputs, unsigned axis, Block &body, ScanKind kind) {
  const layout::Layout &layout = kgpu::layoutOf(inputs.front());
  if (std::string why = whyNotAlong(layout, axis); !why.empty())
    return op->emitOpError() << "cannot be scanned: " << why;
  nvvm::Registers held;
  for (Value input : inputs)
    held.emplace_back(registersOf(input));
  // Padding comes after all elements, so it affects none of them.
  bool inside = true;
  Scanned scanned = scanAlong(
      builder, layout, axis, held, place.bits(layout),
      [&](ValueRange left, ValueRange right) {
        FailureOr<SmallVector<Value>> combined = emitCombination(body, left, right);
        inside &= succeeded(combined);
        return inside ? *combined : SmallVector<Value>(left);
      },
      kind);
  if (!inside)
    return failure();
  return scanned;
}

LogicalResult Emitter::emitScan(tile::ScanOp op) {
  FailureOr<Scanned> scanned = scanInWarp(op, op.getInputs(), op.getAxis(), op.getBody().front(), ScanKind::Inclusive);
  if (failed(scanned))
    return failure();
  for (auto [output, values] : llvm::zip_equal(op.getOutputs(), scanned->results))
    define(output, std::move(values));
  return success();
}

LogicalResult Emitter::emitPartialScan(kgpu::PartialScanOp op) {
  FailureOr<Scanned> scanned = scanInWarp(op, op.getInputs(), op.getAxis(), op.getBody().front(),
                                          op.getExclusive() ? ScanKind::Exclusive : ScanKind::Inclusive);
  if (failed(scanned))
    return failure();
  for (auto [output, values] : llvm::zip_equal(op.getOutputs(), scanned->results))
    define(output, std::move(values));
  for (auto [total, values] : llvm::zip_equal(op.getTotals(), scanned->totals))
    define(total, std::move(values));
  return success();
}

LogicalResult Emitter::emitPutBefore(kgpu::PutBeforeOp op) {
  const layout::Layout &layout = kgpu::layoutOf(op.getValues().front()),
                       &ofBefore = kgpu::layoutOf(op.getBefore().front());
  auto shape = cast<RankedTensorType>(op.getBefore().front().getType()).getShape();
  SmallVector<TileRegisters> results(op.getValues().size());
  for (unsigned reg = 0; reg < layout.registers(); ++reg) {
    layout::Coordinates where = layout.coordinates({reg, 0, 0, 0});
    for (auto [coordinate, extent] : llvm::zip_equal(where, shape))
      coordinate = extent == 1 ? 0 : coordinate;
    std::optional<unsigned> from = ofBefore.registerOf(where, 0);
    if (!from)
      return op.emitOpError("has what stands before in another thread");
    SmallVector<Value> left, right;
    for (auto [before, value] : llvm::zip_equal(op.getBefore(), op.getValues())) {
      left.push_back(registersOf(before)[*from]);
      right.push_back(registersOf(value)[reg]);
    }
    FailureOr<SmallVector<Value>> combined = emitCombination(op.getBody().front(), left, right);
    if (failed(combined))
      return failure();
    Value isFirst; // Null: it cannot be the first.
    if (layout.coordinates({reg, 0, 0, 0})[op.getAxis()] == 0)
      isFirst = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                      place.coordinate(builder, layout, reg, op.getAxis()), constantOf(builder, 0));
    for (auto [list, joined, alone] : llvm::zip_equal(results, *combined, right))
      list.push_back(isFirst ? arith::SelectOp::create(builder, isFirst, alone, joined).getResult() : joined);
  }
  for (auto [output, values] : llvm::zip_equal(op.getOutputs(), results))
    define(output, std::move(values));
  return success();
}

} // namespace kpkg::lower::nvvm
