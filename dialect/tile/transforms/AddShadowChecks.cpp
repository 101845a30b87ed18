// Adds checks by shadow memory to kernels: of elements that were never written, and of races between blocks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %t = tile.load %x[%i] fill %zero : !tile.view<1xf32> -> tensor<8xf32>
// After:  %at = tile.iota + %i : tensor<8xindex>
//         %was = tile.gather %x.written[%at] fill 1 : !tile.view<1xi32>
//         tile.print "{}x.k:3: ..."(%was != 0, %at, ...) {tile.check = "x.k:3: ..."}
//         %old = tile.atomic compare_exchange %reads, %x.accesses[%at] expected 0 : !tile.view<1xi32, mut>
//         tile.print "{}x.k:3: ..."(%old is no write of another block, %at, ...) {tile.check = "x.k:3: ..."}
//         %t = tile.load %x[%i] fill %zero : !tile.view<1xf32> -> tensor<8xf32>
//
// On entry: any verified kernel without layouts.
// On exit: each view argument has shadow arguments behind all others, and checks come before the accesses.
//
// An element's access cell is 0, or 8 * (block + 1) + its state. Blocks are numbered from 0, the x axis fastest. Each
// access changes the cell atomically, so that the later one of two conflicting accesses finds the earlier one.
#include "dialect/tile/transforms/AddShadowChecks.h"
#include "dialect/tile/ir/KernelAttributes.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "dialect/tile/transforms/CheckBuilder.h"
#include "dialect/tile/transforms/ExpandAddStores.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::tile {
#define GEN_PASS_DEF_TILEADDSHADOWCHECKS
#include "dialect/tile/transforms/Passes.h.inc"

namespace {

/// The states of an access cell, in its low bits.
enum State : int32_t {
  ReadByOne = 1,    ///< read by this block alone
  ReadByMany = 2,   ///< read by this block and others
  Written = 3,      ///< written by this block alone, which may also have read it
  UpdatedByOne = 4, ///< updated atomically by this block alone
  UpdatedByMany = 5 ///< updated atomically by this block and others
};
constexpr int32_t stateBits = 3;

enum class AccessKind { Read, Write, Update };

/// The shadow arguments of a view argument, null where a check is not wanted.
struct Shadow {
  Value written, accesses;
};

/// Elements of an argument: its coordinates, and which of them are accessed (null: all that lie in the argument).
struct Elements {
  SmallVector<Value> coordinates;
  Value mask;
};

class ShadowBuilder : public CheckBuilder {
public:
  ShadowBuilder(KernelOp kernel, Operation *access, ArrayRef<std::string> names, ArrayRef<Shadow> shadows)
      : CheckBuilder(kernel, access, names), shadows(shadows), isOfThreads(tile::isOfThreads(kernel)) {}

  /// Adds the checks of an access to the tile of type `type` at `offsets`.
  void tileAt(AccessKind kind, Type type, Value view, ValueRange offsets) {
    SmallVector<Value> coordinates;
    if (auto tile = dyn_cast<RankedTensorType>(type)) {
      shape = llvm::to_vector(tile.getShape());
      coordinates = coordinatesOf(builder, loc, shape, offsets);
    } else if (!isOfThreads) {
      shape = {1};
    }
    elements(kind, view, coordinates, Value());
  }

  /// Adds the checks of an access to elements, for tiles of coordinates of one shape and a mask, which may be null.
  void gathered(AccessKind kind, Value view, ValueRange indices, Value mask) {
    shape = llvm::to_vector(cast<RankedTensorType>(indices.front().getType()).getShape());
    elements(kind, view, llvm::to_vector(indices), mask);
  }

private:
  ArrayRef<Shadow> shadows;
  bool isOfThreads;
  SmallVector<int64_t> shape; ///< of all values; none for scalars

  void elements(AccessKind kind, Value view, SmallVector<Value> coordinates, Value mask) {
    auto argument = dyn_cast<BlockArgument>(argumentOf(view));
    if (!argument || cast<ViewType>(argument.getType()).getRank() == 0)
      return; // the memory of a block, or an absent tensor
    const Shadow &shadow = shadows[argument.getArgNumber()];
    Elements elements = inArgument(view, std::move(coordinates), mask);
    if (shadow.accesses)
      if (Value block = blockNumber())
        checkAccess(kind, view, shadow.accesses, elements, block);
    if (!shadow.written)
      return;
    if (kind != AccessKind::Write)
      checkWritten(view, shadow.written, elements);
    if (kind != AccessKind::Read)
      markWritten(shadow.written, elements);
  }

  //===--- Values -------------------------------------------------------------------------------------------------===//

  Type shaped(Type element) const { return shape.empty() ? element : RankedTensorType::get(shape, element); }
  Type i32() { return shaped(builder.getI32Type()); }

  Value constant(int32_t number) {
    auto one = builder.getI32IntegerAttr(number);
    if (shape.empty())
      return arith::ConstantOp::create(builder, loc, one);
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(cast<ShapedType>(i32()), cast<Attribute>(one)));
  }

  Value splat(Value scalar) {
    return shape.empty() ? scalar : SplatOp::create(builder, loc, shaped(scalar.getType()), scalar).getResult();
  }

  Value both(Value left, Value right) {
    return left && right ? arith::AndIOp::create(builder, loc, left, right).getResult() : left ? left : right;
  }
  Value either(Value left, Value right) { return arith::OrIOp::create(builder, loc, left, right); }
  Value isEqual(Value left, Value right) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, left, right);
  }
  Value isNot(Value left, Value right) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, left, right);
  }

  /// Returns the elements of a view, at these coordinates in it, as elements of its argument.
  Elements inArgument(Value view, SmallVector<Value> coordinates, Value mask) {
    while (Value source = sourceOfPart(view)) {
      if (!coordinates.empty())
        mask = both(mask, inside(view, coordinates, llvm::to_vector(llvm::seq<int64_t>(coordinates.size()))));
      if (auto drop = view.getDefiningOp<DropOp>()) {
        for (auto [dim, index] : llvm::zip(drop.getDims(), drop.getIndices()))
          coordinates.insert(coordinates.begin() + dim, splat(index));
      } else {
        auto slice = view.getDefiningOp<SliceOp>();
        int64_t dim = slice.getDimension();
        Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
        Value begin = arith::MaxSIOp::create(builder, loc, slice.getBegin(), zero);
        coordinates[dim] = arith::AddIOp::create(builder, loc, coordinates[dim], splat(begin));
      }
      view = source;
    }
    return {std::move(coordinates), mask};
  }

  //===--- Blocks -------------------------------------------------------------------------------------------------===//

  /// Returns the extents of the grid, or of the output tiles, the fastest one first. Empty in a persistent kernel
  /// outside of its loop.
  SmallVector<Value> blockExtents() {
    if (auto tiles = access->getParentOfType<ForTilesOp>())
      return llvm::to_vector(llvm::reverse(tiles.getCounts()));
    SmallVector<Value> extents;
    if (!kernel.isPersistent())
      for (GridAxis axis : {GridAxis::x, GridAxis::y, GridAxis::z})
        extents.push_back(GridDimOp::create(builder, loc, builder.getIndexType(), axis));
    return extents;
  }

  SmallVector<Value> blockCoordinates() {
    if (auto tiles = access->getParentOfType<ForTilesOp>())
      return llvm::to_vector_of<Value>(llvm::reverse(tiles.getCoordinates()));
    SmallVector<Value> coordinates;
    for (GridAxis axis : {GridAxis::x, GridAxis::y, GridAxis::z})
      coordinates.push_back(BlockIdOp::create(builder, loc, builder.getIndexType(), axis));
    return coordinates;
  }

  /// Returns the number of the block as it stands in a cell: 8 * (block + 1), an i32. Null in a persistent kernel
  /// outside of its loop, where the code may run in any number of blocks.
  Value blockNumber() {
    SmallVector<Value> extents = blockExtents();
    if (extents.empty())
      return {};
    SmallVector<Value> coordinates = blockCoordinates();
    Value number = coordinates.pop_back_val();
    while (!coordinates.empty()) {
      number = arith::MulIOp::create(builder, loc, number, extents[coordinates.size() - 1]);
      number = arith::AddIOp::create(builder, loc, number, coordinates.pop_back_val());
    }
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value eight = arith::ConstantIndexOp::create(builder, loc, 1 << stateBits);
    number = arith::MulIOp::create(builder, loc, arith::AddIOp::create(builder, loc, number, one), eight);
    return splat(arith::IndexCastOp::create(builder, loc, builder.getI32Type(), number));
  }

  /// Returns the coordinates of the block in a cell, in the order in which the source has them.
  SmallVector<Value> blockIn(Value cell) {
    SmallVector<Value> extents = blockExtents(), coordinates;
    Value block = arith::ShRUIOp::create(builder, loc, cell, constant(stateBits));
    Value rest = arith::IndexCastOp::create(builder, loc, shaped(builder.getIndexType()),
                                            arith::SubIOp::create(builder, loc, block, constant(1)));
    for (auto [axis, extent] : llvm::enumerate(extents)) {
      bool isLast = axis + 1 == extents.size();
      coordinates.push_back(isLast ? rest : arith::RemSIOp::create(builder, loc, rest, splat(extent)).getResult());
      if (!isLast)
        rest = arith::DivSIOp::create(builder, loc, rest, splat(extent));
    }
    if (kernel.isPersistent())
      std::reverse(coordinates.begin(), coordinates.end());
    return coordinates;
  }

  //===--- Shadow memory ------------------------------------------------------------------------------------------===//

  /// Returns one element of a shadow. An element that is not accessed does not exist.
  Value elementOf(Value shadow, const Elements &elements) {
    SmallVector<Value> coordinates = elements.coordinates;
    if (elements.mask) {
      Value outside = arith::ConstantIndexOp::create(builder, loc, -1);
      coordinates[0] = arith::SelectOp::create(builder, loc, elements.mask, coordinates[0], outside);
    }
    return DropOp::create(builder, loc, shadow, llvm::to_vector(llvm::seq<int64_t>(coordinates.size())), coordinates);
  }

  /// Replaces cells, with `expected` only those that have this value. Returns the cells before it, or 0 for elements
  /// that are not accessed.
  Value exchange(Value shadow, const Elements &elements, Value value, Value expected = {}) {
    AtomicKind kind = expected ? AtomicKind::CompareExchange : AtomicKind::Exchange;
    if (isOfThreads)
      return AtomicElementOp::create(builder, loc, i32(), kind, value, elementOf(shadow, elements), expected).getOld();
    return AtomicOp::create(builder, loc, i32(), kind, value, shadow, elements.coordinates, elements.mask, expected)
        .getOld();
  }

  /// Checks that the elements, which are read, were written before.
  void checkWritten(Value view, Value written, const Elements &elements) {
    Value isWritten;
    Value one = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(1));
    if (isOfThreads)
      isWritten = LoadOp::create(builder, loc, builder.getI32Type(), elementOf(written, elements), ValueRange(), one);
    else
      isWritten = GatherOp::create(builder, loc, i32(), written, elements.coordinates, one, elements.mask);
    report(isNot(isWritten, constant(0)),
           "an element of " + nameOf(argumentOf(view)) + " is read that was never written",
           "element " + holes(elements.coordinates.size()) + " of " + nameOf(argumentOf(view)) +
               " is read but was never written",
           elements.coordinates);
  }

  void markWritten(Value written, const Elements &elements) {
    if (isOfThreads)
      StoreOp::create(builder, loc, constant(1), elementOf(written, elements), ValueRange());
    else
      ScatterOp::create(builder, loc, constant(1), written, elements.coordinates, elements.mask);
  }

  /// Records an access in the cells, and checks that no other block has accessed the elements in a conflicting way.
  void checkAccess(AccessKind kind, Value view, Value cells, const Elements &elements, Value block) {
    auto stateOf = [&](Value cell) {
      return arith::AndIOp::create(builder, loc, cell, constant((1 << stateBits) - 1)).getResult();
    };
    auto own = [&](State state) { return arith::AddIOp::create(builder, loc, block, constant(state)).getResult(); };
    auto isOwn = [&](Value cell, ArrayRef<State> states) {
      Value any = isEqual(cell, constant(0));
      for (State state : states)
        any = either(any, isEqual(cell, own(state)));
      return any;
    };
    auto isShared = [&](Value cell, State one, State many) {
      return either(isEqual(stateOf(cell), constant(one)), isEqual(stateOf(cell), constant(many)));
    };
    if (kind == AccessKind::Write) {
      Value old = exchange(cells, elements, own(Written));
      reportRace(isOwn(old, {ReadByOne, Written, UpdatedByOne}), "accesses", "written", view, elements, old);
      return;
    }
    bool isRead = kind == AccessKind::Read;
    State one = isRead ? ReadByOne : UpdatedByOne, many = isRead ? ReadByMany : UpdatedByMany;
    Value old = exchange(cells, elements, own(one), constant(0));
    // The first access left its state. Another one of the same kind makes it one of many blocks; a block's update
    // replaces its own read.
    Value becomes =
        arith::AddIOp::create(builder, loc, arith::SubIOp::create(builder, loc, old, stateOf(old)), constant(many));
    Value changes = isNot(old, own(one));
    changes = both(changes, isEqual(stateOf(old), constant(one)));
    if (!isRead) {
      Value replaces = isEqual(old, own(ReadByOne));
      becomes = arith::SelectOp::create(builder, loc, replaces, own(UpdatedByOne), becomes);
      changes = either(changes, replaces);
    }
    Value isFine = either(isOwn(old, {ReadByOne, Written, UpdatedByOne}), isShared(old, one, many));
    Elements changed = {elements.coordinates, both(elements.mask, changes)};
    Value late = exchange(cells, changed, becomes);
    // In between only such an access may have changed the cell.
    isFine = both(isFine, either(isOwn(late, {ReadByOne}), isShared(late, one, many)));
    Value other = arith::SelectOp::create(builder, loc, isEqual(late, constant(0)), old, late);
    reportRace(isFine, isRead ? "writes" : "reads or writes", isRead ? "read" : "updated", view, elements, other);
  }

  /// `there` is the access of the other block, "writes", and `here` that of this one, "read".
  void reportRace(Value holds, const std::string &there, const std::string &here, Value view, const Elements &elements,
                  Value cell) {
    SmallVector<Value> values = elements.coordinates, block = blockIn(cell);
    std::string name = nameOf(argumentOf(view));
    std::string format = "element " + holes(values.size()) + " of " + name + ", which " +
                         (kernel.isPersistent() ? "tile " : "block ") + holes(block.size()) + " " + there + ", is " +
                         here;
    llvm::append_range(values, block);
    report(holds, "an element of " + name + ", which another block " + there + ", is " + here, format, values);
  }
};

void checkAccesses(Operation *op, ShadowBuilder &shadow) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](LoadOp load) { shadow.tileAt(AccessKind::Read, load.getType(), load.getView(), load.getOffsets()); })
      .Case([&](StoreOp store) {
        shadow.tileAt(AccessKind::Write, store.getValue().getType(), store.getView(), store.getOffsets());
      })
      .Case([&](AddStoreOp store) {
        shadow.tileAt(AccessKind::Update, store.getValue().getType(), store.getView(), store.getOffsets());
      })
      .Case([&](GatherOp access) {
        shadow.gathered(AccessKind::Read, access.getView(), access.getIndices(), access.getMask());
      })
      .Case([&](ScatterOp access) {
        shadow.gathered(AccessKind::Write, access.getView(), access.getIndices(), access.getMask());
      })
      .Case([&](AtomicOp access) {
        shadow.gathered(AccessKind::Update, access.getView(), access.getIndices(), access.getMask());
      })
      .Case([&](AtomicElementOp access) {
        shadow.tileAt(AccessKind::Update, access.getValue().getType(), access.getView(), ValueRange());
      });
}

struct TileAddShadowChecks final : impl::TileAddShadowChecksBase<TileAddShadowChecks> {
  using TileAddShadowChecksBase::TileAddShadowChecksBase;
  void runOnOperation() override { addShadowChecks(getOperation(), {uninit, race}); }
};

/// Appends the shadows of all view arguments.
SmallVector<Shadow> addShadows(KernelOp kernel, ShadowChecks checks) {
  SmallVector<Shadow> shadows(kernel.getNumArguments());
  Type i32 = IntegerType::get(kernel.getContext(), 32);
  auto append = [&](int64_t rank, bool isMut) {
    (void)kernel.insertArgument(kernel.getNumArguments(), ViewType::get(rank, i32, isMut), {}, kernel.getLoc());
    return kernel.getArgument(kernel.getNumArguments() - 1);
  };
  for (Shadow &shadow : shadows) {
    auto view = dyn_cast<ViewType>(kernel.getArgument(&shadow - shadows.data()).getType());
    if (view && checks.uninit)
      shadow.written = append(view.getRank(), view.getIsMut());
    if (view && checks.race)
      shadow.accesses = append(view.getRank(), true);
  }
  return shadows;
}

} // namespace

void addShadowChecks(KernelOp kernel, ShadowChecks checks, ArrayRef<std::string> names) {
  SmallVector<Operation *> accesses;
  kernel.walk([&](Operation *op) { accesses.push_back(op); });
  SmallVector<Shadow> shadows = addShadows(kernel, checks);
  for (Operation *access : accesses) {
    ShadowBuilder shadow(kernel, access, names, shadows);
    checkAccesses(access, shadow);
  }
}

} // namespace kpkg::tile
