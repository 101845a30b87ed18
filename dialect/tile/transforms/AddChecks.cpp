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
#include "dialect/tile/transforms/CheckBuilder.h"
#include "dialect/tile/transforms/ExpandAddStores.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::tile {
#define GEN_PASS_DEF_TILEADDCHECKS
#include "dialect/tile/transforms/Passes.h.inc"

namespace {

class AccessChecks : public CheckBuilder {
public:
  using CheckBuilder::CheckBuilder;

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
};

void checkIndices(Operation *op, AccessChecks &check) {
  auto allOf = [](ValueRange indices) { return llvm::to_vector(llvm::seq<int64_t>(indices.size())); };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](DropOp drop) { check.indices(drop.getView(), drop.getIndices(), drop.getDims(), Value()); })
      .Case<GatherOp, ScatterOp, AtomicOp>([&](auto access) {
        check.indices(access.getView(), access.getIndices(), allOf(access.getIndices()), access.getMask());
      });
}

void checkNumbers(Operation *op, AccessChecks &check) {
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
    AccessChecks check(kernel, access, names);
    if (checks.bounds)
      checkIndices(access, check);
    if (checks.nan)
      checkNumbers(access, check);
  }
}

} // namespace kpkg::tile
