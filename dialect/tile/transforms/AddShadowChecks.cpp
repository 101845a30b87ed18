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
//
// The shared memory of a kernel at thread level has shadows of its own. The cells tell threads apart, and when each
// passed its last barrier: accesses before and after a barrier do not conflict.
#include "dialect/tile/transforms/AddShadowChecks.h"
#include "dialect/tile/ir/KernelAttributes.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "dialect/tile/transforms/CheckBuilder.h"
#include "dialect/tile/transforms/ExpandAddStores.h"
#include "dialect/tile/transforms/Passes.h"
#include "dialect/tile/transforms/ThreadShadows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::tile {
#define GEN_PASS_DEF_TILEADDSHADOWCHECKS
#include "dialect/tile/transforms/Passes.h.inc"

namespace {

/// The states of an access cell, in its low bits. One is the block or thread in the cell.
enum State : int32_t {
  ReadByOne = 1,    ///< read by this one alone
  ReadByMany = 2,   ///< read by this one and others
  Written = 3,      ///< written by this one alone, which may also have read it
  UpdatedByOne = 4, ///< updated atomically by this one alone
  UpdatedByMany = 5 ///< updated atomically by this one and others
};
enum class AccessKind { Read, Write, Update };

/// Elements of an argument or of shared memory: its coordinates, and which of them are accessed (null: all that lie in
/// it).
struct Elements {
  SmallVector<Value> coordinates;
  Value mask;
};

class ShadowBuilder : public CheckBuilder {
public:
  /// `shadows` has those of arguments and of shared memory; `threads` serve kernels at thread level.
  ShadowBuilder(KernelOp kernel, Operation *access, ArrayRef<std::string> names,
                const llvm::DenseMap<Value, Shadow> &shadows, const ThreadCells &threads)
      : CheckBuilder(kernel, access, names), shadows(shadows), threads(threads), isOfThreads(tile::isOfThreads(kernel)),
        cell(builder.getI32Type()) {}

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

  /// Adds the checks of an access to `count` elements along the last dimension.
  void line(AccessKind kind, Value view, ValueRange first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      SmallVector<Value> coordinates(first);
      Value distance = arith::ConstantIndexOp::create(builder, loc, i);
      coordinates.back() = arith::AddIOp::create(builder, loc, coordinates.back(), distance);
      elements(kind, view, coordinates, Value());
    }
  }

private:
  const llvm::DenseMap<Value, Shadow> &shadows;
  const ThreadCells &threads;
  bool isOfThreads;
  IntegerType cell;           ///< the type of the cells that are accessed
  SmallVector<int64_t> shape; ///< of all values; none for scalars

  void elements(AccessKind kind, Value view, SmallVector<Value> coordinates, Value mask) {
    Value whole = argumentOf(view);
    auto found = shadows.find(whole);
    if (found == shadows.end() || cast<ViewType>(whole.getType()).getRank() == 0)
      return; // memory that is not checked, or an absent tensor
    const Shadow &shadow = found->second;
    Elements elements = inArgument(view, std::move(coordinates), mask);
    bool isShared = !isa<BlockArgument>(whole);
    if (shadow.accesses && isShared) {
      cell = builder.getI64Type();
      checkAccess(kind, view, shadow.accesses, elements, threads.ownCell(builder, loc));
      cell = builder.getI32Type();
    } else if (shadow.accesses) {
      if (Value block = blockNumber())
        checkAccess(kind, view, shadow.accesses, elements, block);
    }
    if (!shadow.written)
      return;
    if (kind != AccessKind::Write)
      checkWritten(view, shadow.written, elements);
    if (kind != AccessKind::Read)
      markWritten(shadow.written, elements);
  }

  //===--- Values -------------------------------------------------------------------------------------------------===//

  Type shaped(Type element) const { return shape.empty() ? element : RankedTensorType::get(shape, element); }
  Type cells() { return shaped(cell); }

  Value constant(int64_t number) {
    auto one = builder.getIntegerAttr(cell, number);
    if (shape.empty())
      return arith::ConstantOp::create(builder, loc, one);
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(cast<ShapedType>(cells()), cast<Attribute>(one)));
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
      return AtomicElementOp::create(builder, loc, cells(), kind, value, elementOf(shadow, elements), expected)
          .getOld();
    return AtomicOp::create(builder, loc, cells(), kind, value, shadow, elements.coordinates, elements.mask, expected)
        .getOld();
  }

  /// Checks that the elements, which are read, were written before.
  void checkWritten(Value view, Value written, const Elements &elements) {
    Value isWritten;
    Value one = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(1));
    if (isOfThreads)
      isWritten = LoadOp::create(builder, loc, builder.getI32Type(), elementOf(written, elements), ValueRange(), one);
    else
      isWritten = GatherOp::create(builder, loc, cells(), written, elements.coordinates, one, elements.mask);
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

  /// Records an access in the cells, and checks that no other block, or thread of the block, has accessed the elements
  /// in a conflicting way. `number` is this one's in a cell.
  void checkAccess(AccessKind kind, Value view, Value cells, const Elements &elements, Value number) {
    bool isShared = !isa<BlockArgument>(argumentOf(view));
    auto stateOf = [&](Value cell) {
      return arith::AndIOp::create(builder, loc, cell, constant((1 << stateBits) - 1)).getResult();
    };
    auto own = [&](State state) { return arith::AddIOp::create(builder, loc, number, constant(state)).getResult(); };
    // Cells of accesses before a barrier are as if they were empty.
    auto isEmpty = [&](Value cell) {
      Value empty = isEqual(cell, constant(0));
      return isShared ? either(empty, negated(ThreadCells::areConcurrent(builder, loc, cell, number))) : empty;
    };
    auto isOwn = [&](Value cell, ArrayRef<State> states) {
      Value any = isEmpty(cell);
      for (State state : states)
        any = either(any, isEqual(cell, own(state)));
      return any;
    };
    auto isCommon = [&](Value cell, State one, State many) {
      return either(isEqual(stateOf(cell), constant(one)), isEqual(stateOf(cell), constant(many)));
    };
    if (kind == AccessKind::Write) {
      Value old = exchange(cells, elements, own(Written));
      reportRace(isOwn(old, {ReadByOne, Written, UpdatedByOne}), "reads or writes", "written", view, elements, old);
      return;
    }
    bool isRead = kind == AccessKind::Read;
    State one = isRead ? ReadByOne : UpdatedByOne, many = isRead ? ReadByMany : UpdatedByMany;
    Value old = exchange(cells, elements, own(one), constant(0));
    // The first access left its state. Another one of the same kind makes it one of many. An update replaces the read
    // of the same block or thread.
    Value becomes =
        arith::AddIOp::create(builder, loc, arith::SubIOp::create(builder, loc, old, stateOf(old)), constant(many));
    Value changes = isNot(old, own(one));
    changes = both(changes, isEqual(stateOf(old), constant(one)));
    auto replaceWhere = [&](Value condition) {
      becomes = arith::SelectOp::create(builder, loc, condition, own(one), becomes);
      changes = either(changes, condition);
    };
    if (!isRead)
      replaceWhere(isEqual(old, own(ReadByOne)));
    if (isShared)
      replaceWhere(both(isNot(old, constant(0)), isEmpty(old)));
    Value isFine = either(isOwn(old, {ReadByOne, Written, UpdatedByOne}), isCommon(old, one, many));
    Elements changed = {elements.coordinates, both(elements.mask, changes)};
    Value late = exchange(cells, changed, becomes);
    // In between only such an access may have changed the cell.
    isFine = both(isFine, either(isOwn(late, {ReadByOne}), isCommon(late, one, many)));
    Value other = arith::SelectOp::create(builder, loc, isEqual(late, constant(0)), old, late);
    reportRace(isFine, isRead ? "writes" : "reads or writes", isRead ? "read" : "updated", view, elements, other);
  }

  Value negated(Value condition) {
    Value yes = isEqual(constant(0), constant(0));
    return arith::XOrIOp::create(builder, loc, condition, yes);
  }

  /// `there` is the access of the other one, "writes", and `here` that of this one, "read".
  void reportRace(Value holds, const std::string &there, const std::string &here, Value view, const Elements &elements,
                  Value cell) {
    SmallVector<Value> values = elements.coordinates;
    std::string name = nameOf(argumentOf(view)),
                format = "element " + holes(values.size()) + " of " + name + ", which ";
    if (!isa<BlockArgument>(argumentOf(view))) {
      values.append(
          {ThreadCells::threadIn(builder, loc, cell), ThreadIdOp::create(builder, loc, builder.getIndexType())});
      report(holds, "an element of " + name + ", which another thread " + there + ", is " + here + " without a barrier",
             format + "thread {} " + there + ", is " + here + " by thread {} without a barrier between", values);
      return;
    }
    SmallVector<Value> block = blockIn(cell);
    format += (kernel.isPersistent() ? "tile " : "block ") + holes(block.size()) + " " + there + ", is " + here;
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
      .Case([&](CopyAsyncOp copy) {
        shadow.line(AccessKind::Read, copy.getSource(), copy.getFrom(), copy.getCount());
        shadow.line(AccessKind::Write, copy.getTarget(), copy.getTo(), copy.getCount());
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
void addArgumentShadows(KernelOp kernel, ShadowChecks checks, llvm::DenseMap<Value, Shadow> &shadows) {
  Type i32 = IntegerType::get(kernel.getContext(), 32);
  auto append = [&](int64_t rank, bool isMut) {
    (void)kernel.insertArgument(kernel.getNumArguments(), ViewType::get(rank, i32, isMut), {}, kernel.getLoc());
    return kernel.getArgument(kernel.getNumArguments() - 1);
  };
  for (unsigned number = 0, count = kernel.getNumArguments(); number < count; ++number) {
    BlockArgument argument = kernel.getArgument(number);
    auto view = dyn_cast<ViewType>(argument.getType());
    if (!view)
      continue;
    Shadow &shadow = shadows[argument];
    if (checks.uninit)
      shadow.written = append(view.getRank(), view.getIsMut());
    if (checks.race)
      shadow.accesses = append(view.getRank(), true);
  }
}

} // namespace

void addShadowChecks(KernelOp kernel, ShadowChecks checks, ArrayRef<std::string> names) {
  SmallVector<Operation *> accesses;
  kernel.walk([&](Operation *op) { accesses.push_back(op); });
  llvm::DenseMap<Value, Shadow> shadows;
  ThreadCells threads;
  if (isOfThreads(kernel)) {
    shadows = addSharedShadows(kernel, checks);
    if (checks.race && !shadows.empty())
      threads = ThreadCells(kernel);
  }
  addArgumentShadows(kernel, checks, shadows);
  for (Operation *access : accesses) {
    ShadowBuilder shadow(kernel, access, names, shadows, threads);
    checkAccesses(access, shadow);
  }
}

} // namespace kpkg::tile
