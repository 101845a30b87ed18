// Matches gathers that read a contiguous piece of a row for each of their rows, and scatters that write one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/transforms/RowGathers.h"
#include "dialect/tile/transforms/IndexFacts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::tile {

static ArrayRef<int64_t> shapeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); }

/// Returns the tile before integer casts and reshapes that keep the order of its elements.
static Value source(Value tile) {
  while (Operation *op = tile.getDefiningOp()) {
    bool keeps =
        isa<arith::IndexCastOp, ReshapeOp>(op) || (isa<BroadcastOp>(op) && shapeOf(op->getOperand(0)) == shapeOf(tile));
    if (!keeps)
      break;
    tile = op->getOperand(0);
  }
  return tile;
}

/// Matches an iota plus scalars, and collects the scalars.
static bool isConsecutive(Value tile, SmallVectorImpl<Value> &start) {
  tile = source(tile);
  if (tile.getDefiningOp<IotaOp>())
    return true;
  auto sum = tile.getDefiningOp<arith::AddIOp>();
  if (!sum)
    return false;
  for (auto [one, other] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())})
    if (auto splat = source(one).getDefiningOp<SplatOp>()) {
      start.push_back(splat.getValue());
      return isConsecutive(other, start);
    }
  return false;
}

std::optional<RowGather> rowGather(ValueRange indices, ArrayRef<int64_t> shape) {
  if (shape.size() != 2 || shape[0] == 1 || shape[1] == 1)
    return std::nullopt;
  std::optional<RowGather> found;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    if (index.getDefiningOp<SplatOp>())
      continue;
    auto broadcast = index.getDefiningOp<BroadcastOp>();
    if (!broadcast)
      return std::nullopt;
    ArrayRef<int64_t> from = shapeOf(broadcast.getValue());
    if (from[0] == shape[0] && from[1] == 1)
      continue;
    RowGather rows{unsigned(dim), {}};
    if (found || from[0] != 1 || from[1] != shape[1] || !isConsecutive(broadcast.getValue(), rows.start))
      return std::nullopt;
    found = rows;
  }
  return found;
}

std::optional<RowGather> rowGather(GatherOp op) {
  return op.getMask() ? std::nullopt : rowGather(op.getIndices(), shapeOf(op.getResult()));
}

int64_t neighboursOf(ViewType view, ValueRange indices, ArrayRef<int64_t> shape) {
  constexpr int64_t mostBytes = 16;
  std::optional<RowGather> rows = rowGather(indices, shape);
  if (!rows || int64_t(rows->along) != view.getUnit())
    return 1;
  ViewFacts facts = view.getFacts();
  int64_t bytes = view.getElementBytes(),
          longest = std::min({mostBytes / bytes, facts.align / bytes, facts.divisible, shape[1] & -shape[1]});
  for (Value start : rows->start)
    longest = std::min(longest, divisorOf(start));
  return std::max<int64_t>(longest, 1);
}

int64_t neighboursOf(ScatterOp op) {
  return op.getMask() ? 1 : neighboursOf(op.getView().getType(), op.getIndices(), shapeOf(op.getValue()));
}

bool scattersRows(ScatterOp op) {
  std::optional<RowGather> rows = op.getMask() ? std::nullopt : rowGather(op.getIndices(), shapeOf(op.getValue()));
  return rows && rows->along + 1 == op.getView().getType().getRank();
}

} // namespace kpkg::tile
