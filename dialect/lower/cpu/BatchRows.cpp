// Batches blocks that compute one row each into tiles of several rows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before:
//   %r = tile.block_id x
//   %v = tile.load %x[%r, %c0] ... -> tensor<1x64xf32>
//   %m = tile.reduce max %v axis 1 : tensor<1x64xf32> -> tensor<1x1xf32>
// After:
//   %v = tile.load %x[%r, %c0] ... -> tensor<8x64xf32>
//   %m = tile.reduce max %v axis 1 : tensor<8x64xf32> -> tensor<8x1xf32>
//
// A short row is one chain of dependent instructions: load, maximum across lanes, exponential, sum across lanes,
// quotient. Out-of-order execution overlaps few such chains, because the next row is hundreds of instructions away. In
// a tile of rows each pass covers all rows, so their chains overlap.
//
// On entry: the kernel is one block without loops or branches, and `tile.block_id x` only numbers rows in loads and
// stores. No other op may mix rows.
// On exit: dimensions of rows have extent RowBatch::rows.
#include "dialect/lower/cpu/BatchRows.h"
#include "dialect/lower/cpu/Elements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static ArrayRef<int64_t> shapeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); }
static bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }

namespace {
class RowBatcher {
public:
  explicit RowBatcher(tile::KernelOp kernel) : body(kernel.getBody().front()), builder(kernel) {}
  RowBatch run();

private:
  bool isRow(Value value);
  bool onlyNumbersRows(Value row);
  std::optional<int64_t> rowDimension(ValueRange offsets, ArrayRef<int64_t> shape);
  bool note(Value view, int64_t dim);
  bool examine(Operation &op);
  bool examineReshape(tile::ReshapeOp op);
  Type widened(Value tile, int64_t dim);
  Value widen(Value tile, int64_t dim);
  void rewrite(Operation &op);

  Block &body;
  OpBuilder builder;
  RowBatch batch;
  int64_t widest = 1;                          ///< The number of elements of a row.
  llvm::DenseMap<Value, int64_t> rowDims;      ///< The row dimension of tiles that differ from row to row.
  llvm::DenseMap<Operation *, int64_t> stores; ///< The row dimension of stores.
  llvm::DenseMap<std::pair<Value, int64_t>, Value> copies;
};
} // namespace

/// Matches the block number along x, also multiplied by 1.
bool RowBatcher::isRow(Value value) {
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    for (auto [a, b] : {std::pair(product.getLhs(), product.getRhs()), std::pair(product.getRhs(), product.getLhs())})
      if (matchPattern(b, m_One()))
        return isRow(a);
  auto id = value.getDefiningOp<tile::BlockIdOp>();
  return id && int(id.getAxis()) == 0;
}

bool RowBatcher::onlyNumbersRows(Value row) {
  return llvm::all_of(row.getUsers(), [&](Operation *user) {
    if (isa<arith::MulIOp>(user))
      return isRow(user->getResult(0)) && onlyNumbersRows(user->getResult(0));
    return isa<tile::LoadOp, tile::StoreOp>(user);
  });
}

/// Returns the dimension in which an access numbers its row. Returns null when no dimension does, and -1 when the
/// access covers more than that row.
std::optional<int64_t> RowBatcher::rowDimension(ValueRange offsets, ArrayRef<int64_t> shape) {
  std::optional<int64_t> found;
  for (auto [dim, offset] : llvm::enumerate(offsets))
    if (isRow(offset))
      found = found || shape[dim] != 1 ? -1 : int64_t(dim);
  return found;
}

/// Records a view that ends with the batch: an argument of which all accesses number rows in `dim`.
bool RowBatcher::note(Value view, int64_t dim) {
  auto argument = dyn_cast<BlockArgument>(view);
  if (!argument)
    return false;
  for (Operation *user : view.getUsers()) {
    if (auto extent = dyn_cast<tile::DimOp>(user); extent && int64_t(extent.getDimension()) == dim)
      return false;
    if (!isa<tile::DimOp, tile::StrideOp, tile::LoadOp, tile::StoreOp>(user))
      return false;
    auto load = dyn_cast<tile::LoadOp>(user);
    auto store = dyn_cast<tile::StoreOp>(user);
    if (load && !isRow(load.getOffsets()[dim]))
      return false;
    if (store && !isRow(store.getOffsets()[dim]))
      return false;
  }
  std::pair<unsigned, int64_t> entry{argument.getArgNumber(), dim};
  if (!llvm::is_contained(batch.views, entry))
    batch.views.push_back(entry);
  return true;
}

bool RowBatcher::examineReshape(tile::ReshapeOp op) {
  auto row = rowDims.find(op.getValue());
  if (row == rowDims.end())
    return true;
  ArrayRef<int64_t> from = shapeOf(op.getValue()), to = shapeOf(op.getResult());
  auto isLong = [](int64_t extent) { return extent != 1; };
  if (!llvm::equal(llvm::make_filter_range(from, isLong), llvm::make_filter_range(to, isLong)))
    return false;
  int64_t before = llvm::count_if(from.take_front(row->second), isLong);
  for (int64_t dim = 0, rank = to.size(); dim < rank; ++dim)
    if (to[dim] == 1 && llvm::count_if(to.take_front(dim), isLong) == before) {
      rowDims[op.getResult()] = dim;
      return true;
    }
  return false;
}

/// Propagates the row dimension through an op. Returns false when the op mixes rows, or is not known to keep them
/// apart.
bool RowBatcher::examine(Operation &op) {
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case<arith::ConstantOp, tile::SplatOp, tile::IotaOp, tile::BlockIdOp, tile::GridDimOp, tile::DimOp,
            tile::StrideOp>([&](Operation *) { return true; })
      .Case([&](tile::LoadOp load) {
        std::optional<int64_t> dim;
        if (isTile(load.getResult()))
          dim = rowDimension(load.getOffsets(), shapeOf(load.getResult()));
        if (!dim)
          return isa<BlockArgument>(load.getView());
        rowDims[load.getResult()] = *dim;
        return *dim >= 0 && note(load.getView(), *dim);
      })
      .Case([&](tile::StoreOp store) {
        if (!isTile(store.getValue()))
          return false;
        std::optional<int64_t> dim = rowDimension(store.getOffsets(), shapeOf(store.getValue()));
        if (!dim || *dim < 0)
          return false;
        auto row = rowDims.find(store.getValue());
        stores[store] = *dim;
        return (row == rowDims.end() || row->second == *dim) && note(store.getView(), *dim);
      })
      .Case([&](tile::ReduceOp reduce) {
        auto row = rowDims.find(reduce.getValue());
        if (row != rowDims.end() && row->second != int64_t(reduce.getAxis()))
          rowDims[reduce.getResult()] = row->second;
        return row == rowDims.end() || row->second != int64_t(reduce.getAxis());
      })
      .Case([&](tile::BroadcastOp broadcast) {
        auto row = rowDims.find(broadcast.getValue());
        if (row == rowDims.end())
          return true;
        int64_t dim = row->second;
        rowDims[broadcast.getResult()] = dim;
        return shapeOf(broadcast.getResult())[dim] == 1;
      })
      .Case([&](tile::ReshapeOp reshape) { return examineReshape(reshape); })
      .Default([&](Operation *other) {
        if (!isElementwise(other))
          return false;
        std::optional<int64_t> dim;
        for (Value operand : other->getOperands())
          if (auto row = rowDims.find(operand); row != rowDims.end()) {
            if (dim && *dim != row->second)
              return false;
            dim = row->second;
          }
        if (dim)
          rowDims[other->getResult(0)] = *dim;
        return true;
      });
}

Type RowBatcher::widened(Value tile, int64_t dim) {
  auto type = cast<RankedTensorType>(tile.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = batch.rows;
  return RankedTensorType::get(shape, type.getElementType());
}

/// Replicates a tile that is the same for all rows. Elementwise ops are cloned on widened operands, so that masks stay
/// recognisable as comparisons.
Value RowBatcher::widen(Value tile, int64_t dim) {
  if (rowDims.count(tile))
    return tile;
  if (Value known = copies.lookup({tile, dim}))
    return known;
  Operation *op = tile.getDefiningOp();
  Value copy;
  if (isElementwise(op)) {
    SmallVector<Value> operands(op->getOperands());
    for (Value &operand : operands)
      operand = isTile(operand) ? widen(operand, dim) : operand;
    builder.setInsertionPointAfter(op);
    Operation *clone = builder.clone(*op);
    clone->setOperands(operands);
    clone->getResult(0).setType(widened(tile, dim));
    copy = clone->getResult(0);
  } else {
    builder.setInsertionPointAfter(op);
    copy = tile::BroadcastOp::create(builder, op->getLoc(), widened(tile, dim), tile);
  }
  copies[{tile, dim}] = copy;
  return copy;
}

void RowBatcher::rewrite(Operation &op) {
  std::optional<int64_t> dim;
  if (auto store = stores.find(&op); store != stores.end())
    dim = store->second;
  else if (op.getNumResults() == 1 && rowDims.count(op.getResult(0)))
    dim = rowDims.lookup(op.getResult(0));
  if (!dim)
    return;
  if (isa<tile::StoreOp>(op) || isElementwise(&op))
    for (OpOperand &operand : op.getOpOperands())
      if (isTile(operand.get()))
        operand.set(widen(operand.get(), *dim));
  for (Value result : op.getResults())
    result.setType(cast<RankedTensorType>(widened(result, *dim)));
}

RowBatch RowBatcher::run() {
  for (Operation &op : body.without_terminator()) {
    if (auto id = dyn_cast<tile::BlockIdOp>(op); id && int(id.getAxis()) == 0 && !onlyNumbersRows(id.getResult()))
      return {};
    if (op.getNumRegions() || !examine(op))
      return {};
  }
  constexpr int64_t mostRows = 8, mostElements = 4096; // Rows whose chains overlap; elements that fit the L1 cache.
  for (auto [tile, dim] : rowDims)
    widest = std::max(widest, cast<RankedTensorType>(tile.getType()).getNumElements());
  batch.rows = std::min(mostRows, mostElements / widest);
  if (batch.rows < 2 || stores.empty())
    return {};
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  for (Operation *op : ops)
    rewrite(*op);
  return batch;
}

RowBatch batchRows(tile::KernelOp kernel) {
  if (!kernel.getBody().hasOneBlock())
    return {};
  return RowBatcher(kernel).run();
}

} // namespace kpkg::lower::cpu
