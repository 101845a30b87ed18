// Adds checks to kernels: of indices against views, and of stored values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %t = tile.gather %x[%i] fill %zero : !tile.view<1xf32>, tensor<8xindex> -> tensor<8xf32>
// After:  %inside = arith.cmpi ult, %i, (tile.dim %x, 0) as tensor<8xindex>
//         tile.print "{}x.k:3: index [{}] ..."(%inside, %i, ...) {tile.check = "x.k:3: ..."}
//         %t = tile.gather %x[%i] fill %zero : !tile.view<1xf32>, tensor<8xindex> -> tensor<8xf32>
//
// On entry: any verified kernel without layouts.
// On exit: checks come before the accesses.
#include "dialect/tile/transforms/AddChecks.h"
#include "dialect/tile/ir/CheckedPrint.h"
#include "dialect/tile/transforms/ExpandAddStores.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::tile {
#define GEN_PASS_DEF_TILEADDCHECKS
#include "dialect/tile/transforms/Passes.h.inc"

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

class CheckBuilder {
public:
  CheckBuilder(KernelOp kernel, Operation *access, ArrayRef<std::string> names)
      : kernel(kernel), access(access), names(names), builder(access), loc(access->getLoc()) {}

  /// Checks that the indices lie in the view where the mask, which may be null, is true.
  void indices(Value view, ValueRange indices, ArrayRef<int64_t> dims, Value mask) {
    if (indices.empty())
      return;
    std::string format =
        "index " + holes(indices.size()) + " leaves the extents " + holes(indices.size()) + " of " + nameOf(view);
    SmallVector<Value> values(indices);
    for (int64_t dim : dims)
      values.push_back(DimOp::create(builder, loc, view, dim));
    report(where(inside(view, indices, dims), mask), "an index leaves " + nameOf(view), format, values);
  }

  /// Checks that a value is a number at the elements of the view that it is written to.
  void numbers(Value value, Value view, ValueRange indices, Value mask) {
    auto type = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
    if (!type)
      return;
    Value wide = value;
    if (type.getWidth() < 32) {
      Type f32 = builder.getF32Type();
      if (auto tile = dyn_cast<RankedTensorType>(value.getType()))
        f32 = RankedTensorType::get(tile.getShape(), f32);
      wide = arith::ExtFOp::create(builder, loc, f32, value);
    }
    Value isNumber = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::ORD, wide, wide);
    if (!indices.empty()) {
      Value written = inside(view, indices, llvm::to_vector(llvm::seq<int64_t>(indices.size())));
      isNumber = where(isNumber, mask ? arith::AndIOp::create(builder, loc, written, mask).getResult() : written);
    }
    SmallVector<Value> values = {wide};
    llvm::append_range(values, indices);
    report(isNumber, "NaN is written to " + nameOf(view),
           "{} is written to " + nameOf(view) + (indices.empty() ? "" : " at index " + holes(indices.size())), values);
  }

  /// As above, for a tile that is written to the elements at `offsets`.
  void numbersAt(Value value, Value view, ValueRange offsets) {
    auto tile = dyn_cast<RankedTensorType>(value.getType());
    if (tile && isa<FloatType>(tile.getElementType()))
      numbers(value, view, coordinatesOf(builder, loc, tile.getShape(), offsets), Value());
    else
      numbers(value, view, offsets, Value());
  }

private:
  KernelOp kernel;
  Operation *access;
  ArrayRef<std::string> names;
  OpBuilder builder;
  Location loc;

  static std::string holes(size_t count) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i)
      text += i ? ", {}" : "{}";
    return text + "]";
  }

  std::string nameOf(Value view) const {
    std::string part = sourceOfPart(view) ? "a part of " : "";
    auto argument = dyn_cast<BlockArgument>(argumentOf(view));
    if (!argument)
      return part + "scratch memory";
    unsigned number = argument.getArgNumber();
    return part + (number < names.size() ? "`" + names[number] + "`" : "argument " + std::to_string(number));
  }

  /// Returns the source's line and the kernel: "x.k:3: in `k`".
  std::string place() {
    auto line = loc->findInstanceOf<FileLineColLoc>();
    std::string text = line ? line.getFilename().str() + ":" + std::to_string(line.getLine()) + ": " : "";
    return text + "in `" + kernel.getKernel().value_or(kernel.getSymName()).str() + "`: ";
  }

  /// Appends the coordinates of the block, or of the tile in a persistent kernel, and returns their format.
  std::string addBlock(SmallVectorImpl<Value> &values) {
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

  Value inside(Value view, ValueRange indices, ArrayRef<int64_t> dims) {
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

  Value where(Value condition, Value mask) {
    return mask ? arith::SelectOp::create(builder, loc, mask, condition, always(builder, loc, condition)).getResult()
                : condition;
  }

  void report(Value holds, const std::string &message, const std::string &format, ArrayRef<Value> values) {
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
};

void checkIndices(Operation *op, CheckBuilder &check) {
  auto allOf = [](ValueRange indices) { return llvm::to_vector(llvm::seq<int64_t>(indices.size())); };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](DropOp drop) { check.indices(drop.getView(), drop.getIndices(), drop.getDims(), Value()); })
      .Case<GatherOp, ScatterOp, AtomicOp>([&](auto access) {
        check.indices(access.getView(), access.getIndices(), allOf(access.getIndices()), access.getMask());
      });
}

void checkNumbers(Operation *op, CheckBuilder &check) {
  llvm::TypeSwitch<Operation *>(op)
      .Case<StoreOp, AddStoreOp>(
          [&](auto store) { check.numbersAt(store.getValue(), store.getView(), store.getOffsets()); })
      .Case<ScatterOp, AtomicOp>([&](auto access) {
        check.numbers(access.getValue(), access.getView(), access.getIndices(), access.getMask());
      });
}

struct TileAddChecks final : impl::TileAddChecksBase<TileAddChecks> {
  using TileAddChecksBase::TileAddChecksBase;
  void runOnOperation() override { addChecks(getOperation(), {bounds, nan}); }
};

} // namespace

void addChecks(KernelOp kernel, Checks checks, ArrayRef<std::string> names) {
  SmallVector<Operation *> accesses;
  kernel.walk([&](Operation *op) { accesses.push_back(op); });
  for (Operation *access : accesses) {
    CheckBuilder check(kernel, access, names);
    if (checks.bounds)
      checkIndices(access, check);
    if (checks.nan)
      checkNumbers(access, check);
  }
}

} // namespace kpkg::tile
