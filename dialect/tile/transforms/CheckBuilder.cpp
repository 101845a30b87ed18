// Builds the checks of one access: conditions, and reports that name the source's line, the kernel and the block.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/transforms/CheckBuilder.h"
#include "dialect/tile/ir/CheckedPrint.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::tile {

namespace {

/// Returns a constant true, or a tile of it, in the shape of `like`.
Value always(OpBuilder &builder, Location loc, Value like) {
  Type type = builder.getI1Type();
  if (auto tile = dyn_cast<RankedTensorType>(like.getType())) {
    auto shaped = RankedTensorType::get(tile.getShape(), type);
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(shaped, true));
  }
  return arith::ConstantIntOp::create(builder, loc, type, 1);
}

} // namespace

std::string CheckBuilder::holes(size_t count) {
  std::string text = "[";
  for (size_t i = 0; i < count; ++i)
    text += i ? ", {}" : "{}";
  return text + "]";
}

std::string CheckBuilder::nameOf(Value view) const {
  std::string part = sourceOfPart(view) ? "a part of " : "";
  auto argument = dyn_cast<BlockArgument>(argumentOf(view));
  if (!argument)
    return part + (isOfThreads(kernel) ? "shared memory" : "scratch memory");
  unsigned number = argument.getArgNumber();
  return part + (number < names.size() ? "`" + names[number] + "`" : "argument " + std::to_string(number));
}

std::string CheckBuilder::place() {
  auto line = loc->findInstanceOf<FileLineColLoc>();
  std::string text = line ? line.getFilename().str() + ":" + std::to_string(line.getLine()) + ": " : "";
  return text + "in `" + kernel.getKernel().value_or(kernel.getSymName()).str() + "`: ";
}

std::string CheckBuilder::addBlock(SmallVectorImpl<Value> &values) {
  if (kernel.isPersistent()) {
    auto tiles = access->getParentOfType<ForTilesOp>();
    if (!tiles)
      return "";
    llvm::append_range(values, tiles.getCoordinates());
    return ", in tile " + holes(tiles.getCoordinates().size());
  }
  for (GridAxis axis : {GridAxis::x, GridAxis::y, GridAxis::z})
    values.push_back(BlockIdOp::create(builder, loc, builder.getIndexType(), axis));
  return ", in block " + holes(3);
}

Value CheckBuilder::inside(Value view, ValueRange indices, ArrayRef<int64_t> dims) {
  Value all;
  for (auto [index, dim] : llvm::zip(indices, dims)) {
    Value extent = DimOp::create(builder, loc, view, dim);
    if (isa<RankedTensorType>(index.getType()))
      extent = SplatOp::create(builder, loc, index.getType(), extent);
    // An unsigned comparison also excludes negative indices.
    Value one = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, index, extent);
    all = all ? arith::AndIOp::create(builder, loc, all, one).getResult() : one;
  }
  return all;
}

Value CheckBuilder::where(Value condition, Value mask) {
  return mask ? arith::SelectOp::create(builder, loc, mask, condition, always(builder, loc, condition)).getResult()
              : condition;
}

void CheckBuilder::report(Value holds, const std::string &message, const std::string &format, ArrayRef<Value> values) {
  SmallVector<Value> all = {holds};
  llvm::append_range(all, values);
  std::string line = place();
  for (char &c : line)
    c = c == '{' ? '(' : c == '}' ? ')' : c; // in a file's name; values stand for braces of formats
  std::string text = "{}" + line + format;
  text += addBlock(all);
  auto print = PrintOp::create(builder, loc, builder.getStringAttr(text), all);
  print->setAttr(checkAttribute, builder.getStringAttr(place() + message));
}

} // namespace kpkg::tile
