// Handles ops that create and reshape tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Frame.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;

static llvm::Error splat(Frame &frame, Operation &op) {
  Tile result = Tile::ofType(op.getResult(0).getType());
  llvm::fill(result.cells, frame.tile(op.getOperand(0)).cells[0]);
  frame.set(op.getResult(0), std::move(result));
  return llvm::Error::success();
}

static llvm::Error iota(Frame &frame, Operation &op) {
  Tile result = Tile::ofType(op.getResult(0).getType());
  for (int64_t i = 0; i < result.size(); ++i)
    result.cells[i].i = i;
  frame.set(op.getResult(0), std::move(result));
  return llvm::Error::success();
}

static SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

/// Fills a tile of the result's shape with the source's elements from `begin` on, with stride `strides[d]` for result
/// dimension d.
static void stridedCopy(Frame &frame, Operation &op, ArrayRef<int64_t> strides, int64_t begin = 0) {
  const Tile &source = frame.tile(op.getOperand(0));
  Tile result = Tile::ofType(op.getResult(0).getType());
  SmallVector<int64_t> index(result.shape.size(), 0);
  for (Cell &cell : result.cells) {
    int64_t offset = begin;
    for (auto [coordinate, stride] : llvm::zip_equal(index, strides))
      offset += coordinate * stride;
    cell = source.cells[offset];
    for (size_t d = index.size(); d-- > 0 && ++index[d] == result.shape[d];)
      index[d] = 0;
  }
  frame.set(op.getResult(0), std::move(result));
}

static llvm::Error broadcast(Frame &frame, Operation &op) {
  const Tile &source = frame.tile(op.getOperand(0));
  SmallVector<int64_t> strides = rowMajorStrides(source.shape);
  for (auto [extent, stride] : llvm::zip_equal(source.shape, strides))
    if (extent == 1)
      stride = 0;
  stridedCopy(frame, op, strides);
  return llvm::Error::success();
}

static llvm::Error permute(Frame &frame, Operation &op) {
  SmallVector<int64_t> source = rowMajorStrides(frame.tile(op.getOperand(0)).shape), strides;
  for (int64_t dim : cast<tile::PermuteOp>(op).getPermutation())
    strides.push_back(source[dim]);
  stridedCopy(frame, op, strides);
  return llvm::Error::success();
}

static llvm::Error extract(Frame &frame, Operation &op) {
  auto part = cast<tile::ExtractOp>(op);
  SmallVector<int64_t> strides = rowMajorStrides(frame.tile(part.getValue()).shape);
  int64_t begin = 0;
  for (auto [stride, offset, step] : llvm::zip_equal(strides, part.getOffsets(), part.getSteps())) {
    begin += stride * offset;
    stride *= step;
  }
  stridedCopy(frame, op, strides, begin);
  return llvm::Error::success();
}

static llvm::Error join(Frame &frame, Operation &op) {
  auto joined = cast<tile::JoinOp>(op);
  Tile result = Tile::ofType(joined.getType());
  ArrayRef<int64_t> shape(result.shape);
  int64_t lines = llvm::product_of(shape.take_front(joined.getAxis()));
  int64_t line = result.size() / lines, begin = 0;
  for (Value part : joined.getParts()) {
    const Tile &source = frame.tile(part);
    int64_t length = source.size() / lines;
    for (int64_t i = 0; i < lines; ++i)
      std::copy_n(source.cells.begin() + i * length, length, result.cells.begin() + i * line + begin);
    begin += length;
  }
  frame.set(joined.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error unpack(Frame &frame, Operation &op) {
  auto unpacked = cast<tile::UnpackOp>(op);
  Tile result = Tile::ofType(unpacked.getType());
  const Tile &words = frame.tile(unpacked.getValue());
  const int64_t bits = unpacked.getBits(), fields = unpacked.getFields(), sign = int64_t(1) << (bits - 1);
  for (auto [i, cell] : llvm::enumerate(result.cells)) {
    uint64_t word = uint64_t(words.cells[i / fields].i);
    int64_t number = int64_t(word >> (i % fields * bits)) & (2 * sign - 1);
    if (unpacked.getIsFloat()) {
      constexpr double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
      cell.f = number & 8 ? -magnitudes[number & 7] : magnitudes[number & 7];
      continue;
    }
    if (unpacked.getIsSigned())
      number = (number ^ sign) - sign;
    if (isa<FloatType>(result.type))
      cell.f = double(number);
    else
      cell.i = number;
  }
  frame.set(unpacked.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error copy(Frame &frame, Operation &op) {
  Tile result = Tile::ofType(op.getResult(0).getType());
  result.cells = frame.tile(op.getOperand(0)).cells;
  frame.set(op.getResult(0), std::move(result));
  return llvm::Error::success();
}

void kpkg::sim::addShapeHandlers(HandlerTable &table) {
  table["tile.splat"] = splat;
  table["tile.iota"] = iota;
  table["tile.broadcast"] = broadcast;
  table["tile.permute"] = permute;
  table["tile.reshape"] = copy;
  table["tile.scalar"] = copy;
  table["tile.extract"] = extract;
  table["tile.join"] = join;
  table["tile.unpack"] = unpack;
}
