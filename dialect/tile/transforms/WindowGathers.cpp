// Matches gathers that read a row of channels for each pixel of a window over an image (im2col).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/transforms/WindowGathers.h"
#include "dialect/tile/transforms/RowGathers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kpkg::tile {
namespace {
/// Returns the value before integer casts and reshapes, which change only the type of a one-column tile.
Value source(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, ReshapeOp, BroadcastOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Returns the scalar that a tile splats, before casts, or null.
Value repeated(Value tile) {
  auto splat = source(tile).getDefiningOp<SplatOp>();
  return splat ? source(splat.getValue()) : Value();
}

/// Returns the number of the kernel argument that `scalar` is.
std::optional<unsigned> argumentOf(Value scalar) {
  auto argument = dyn_cast_if_present<BlockArgument>(scalar);
  if (!argument || !isa<KernelOp>(argument.getOwner()->getParentOp()) || !argument.getType().isIndex())
    return std::nullopt;
  return argument.getArgNumber();
}

/// Returns the operands of `op`, the splatted scalar second.
template <typename Op> std::optional<std::pair<Value, Value>> withScalar(Value tile) {
  auto op = tile.getDefiningOp<Op>();
  if (!op)
    return std::nullopt;
  for (auto [one, other] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())})
    if (Value scalar = repeated(other))
      return std::pair(source(one), scalar);
  return std::nullopt;
}

bool isConstant(Value value, int64_t expected) {
  APInt constant;
  return matchPattern(value, m_ConstantInt(&constant)) && constant.getSExtValue() == expected;
}

/// Returns the upper bound of a loop coordinate that counts from 0 by 1, or null.
Value endOf(Value number) {
  auto argument = dyn_cast<BlockArgument>(number);
  Operation *parent = argument ? argument.getOwner()->getParentOp() : nullptr;
  if (auto tiles = dyn_cast_if_present<ForTilesOp>(parent))
    return tiles.getCounts()[argument.getArgNumber()];
  auto loop = dyn_cast_if_present<scf::ForOp>(parent);
  bool counts = loop && loop.getInductionVar() == argument && isConstant(loop.getLowerBound(), 0) &&
                isConstant(loop.getStep(), 1);
  return counts ? loop.getUpperBound() : Value();
}

/// Returns the tile.dim op of an extent. Looks through the prelude's ceildiv by 1, which is -(-n // 1).
DimOp extentIn(Value value) {
  auto negated = [](Value value) {
    auto difference = value.getDefiningOp<arith::SubIOp>();
    return difference && isConstant(difference.getLhs(), 0) ? difference.getRhs() : Value();
  };
  if (Value quotient = negated(value))
    if (auto division = quotient.getDefiningOp<arith::FloorDivSIOp>(); division && isConstant(division.getRhs(), 1))
      if (Value extent = negated(division.getLhs()))
        value = extent;
  return value.getDefiningOp<DimOp>();
}

/// Returns the tile.dim op of the extent that bounds a tap. A loop counts up to the extent, or the tap is clamped:
/// min(max(n, 0), extent - 1).
DimOp extentOfTaps(Value tap) {
  if (Value end = endOf(tap))
    return extentIn(end);
  auto least = tap.getDefiningOp<arith::MinSIOp>();
  if (!least)
    return {};
  for (auto [number, last] : {std::pair(least.getLhs(), least.getRhs()), std::pair(least.getRhs(), least.getLhs())}) {
    auto most = source(number).getDefiningOp<arith::MaxSIOp>();
    bool isPositive = most && (isConstant(most.getLhs(), 0) || isConstant(most.getRhs(), 0));
    Value extent;
    if (auto difference = last.getDefiningOp<arith::SubIOp>(); difference && isConstant(difference.getRhs(), 1))
      extent = difference.getLhs();
    if (auto sum = last.getDefiningOp<arith::AddIOp>(); sum && isConstant(sum.getRhs(), -1))
      extent = sum.getLhs();
    if (isPositive && extent)
      return extent.getDefiningOp<DimOp>();
  }
  return {};
}

/// Matches tap * step, where taps range from 0 to the extent of a view's dimension.
bool isTapTimesStep(Value scalar, WindowDimension &dim) {
  auto product = scalar.getDefiningOp<arith::MulIOp>();
  if (!product)
    return false;
  for (auto [tap, step] :
       {std::pair(product.getLhs(), product.getRhs()), std::pair(product.getRhs(), product.getLhs())}) {
    std::optional<unsigned> argument = argumentOf(source(step));
    DimOp extent = extentOfTaps(source(tap));
    if (!argument || !extent)
      continue;
    auto view = extent ? dyn_cast<BlockArgument>(extent.getView()) : BlockArgument();
    if (!view)
      return false;
    dim.step = *argument;
    dim.tapsArgument = view.getArgNumber();
    dim.tapsDim = extent.getDimension();
    dim.offset = scalar;
    return true;
  }
  return false;
}

/// Matches pixel * stride + start + tap * step.
bool isAffine(Value column, WindowDimension &dim) {
  bool hasTaps = false, hasStart = false;
  Value rest = source(column);
  while (auto sum = withScalar<arith::AddIOp>(rest)) {
    if (!hasTaps && isTapTimesStep(sum->second, dim)) {
      hasTaps = true;
    } else if (std::optional<unsigned> start = argumentOf(sum->second); start && !hasStart) {
      hasStart = true;
      dim.start = *start;
    } else {
      return false;
    }
    rest = sum->first;
  }
  auto product = withScalar<arith::MulIOp>(rest);
  std::optional<unsigned> stride = product ? argumentOf(product->second) : std::nullopt;
  if (!hasTaps || !hasStart || !stride)
    return false;
  dim.stride = *stride;
  dim.pixel = product->first;
  return true;
}

/// Matches an iota plus scalars.
bool countsRows(Value column) {
  while (auto sum = withScalar<arith::AddIOp>(column))
    column = sum->first;
  return column.getDefiningOp<IotaOp>() != nullptr;
}

/// Matches number - number // count * count as `dim.pixel`, and replaces `number` by number // count. A null `number`
/// matches any numbering of rows.
bool countsOn(Value &number, WindowDimension &dim) {
  auto rest = dim.pixel.getDefiningOp<arith::SubIOp>();
  auto whole = rest ? withScalar<arith::MulIOp>(source(rest.getRhs())) : std::nullopt;
  auto quotient = whole ? whole->first.getDefiningOp<arith::FloorDivSIOp>() : arith::FloorDivSIOp();
  if (!quotient || source(rest.getLhs()) != source(quotient.getLhs()) || repeated(quotient.getRhs()) != whole->second)
    return false;
  std::optional<unsigned> count = argumentOf(whole->second);
  Value counted = source(quotient.getLhs());
  if (!count || (number ? counted != number : !countsRows(counted)))
    return false;
  dim.count = *count;
  number = quotient;
  return true;
}
} // namespace

std::optional<WindowGather> windowGather(GatherOp op) {
  constexpr int64_t leastRank = 3, mostRank = 5;
  auto view = dyn_cast<BlockArgument>(op.getView());
  int64_t rank = op.getView().getType().getRank();
  std::optional<RowGather> rows = rowGather(op);
  if (!view || !rows || rank < leastRank || rank > mostRank || rows->along != rank - 1)
    return std::nullopt;
  WindowGather found{view, {}, {}, rows->start};
  found.dims.resize(rank - 2);
  Value number;
  for (unsigned i = rank - 2; i-- > 0;) {
    WindowDimension &dim = found.dims[i];
    Value index = op.getIndices()[i + 1];
    if (!isAffine(index, dim) || !countsOn(number, dim))
      return std::nullopt;
  }
  found.image = op.getIndices()[0];
  Value image = source(found.image);
  while (auto sum = withScalar<arith::AddIOp>(image))
    image = sum->first;
  if (image != number)
    return std::nullopt;
  return found;
}

} // namespace kpkg::tile
