// Compares each access to shared memory with those of other threads since the last barrier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/async/Races.h"
#include "dialect/sim/Addresses.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;

/// Returns whether one of the accesses is by another thread than the other.
static bool differs(int one, int other) { return one != other || one == LastAccesses::kSeveral; }

RaceCheck::RaceCheck(Operation &op, Value value, Kind kind)
    : op(op), kind(kind), isChecked(self().machine->isWithoutRoles() && !kgpu::sharedAccessesOf(&op).empty()),
      execution(self().machine->nextExecution()) {
  if (auto tile = dyn_cast<RankedTensorType>(value.getType()); tile && isChecked) {
    layout = kgpu::layoutOf(tile);
    shape = tile.getShape();
  }
}

void RaceCheck::access(const char *address, int64_t number) {
  SmallVector<int64_t> coordinates(shape.size());
  for (size_t d = shape.size(); d-- > 0; number /= shape[d])
    coordinates[d] = number % shape[d];
  access(address, coordinates);
}

void RaceCheck::access(const char *address, ArrayRef<int64_t> coordinates) {
  if (!isChecked || !address)
    return;
  // The first replica writes, and all of them read.
  bool areSeveral = kind == Kind::Read && (!layout || layout->isReplicated());
  layout::Place place = layout ? layout->placeOf(coordinates).value_or(layout::Place()) : layout::Place();
  int thread = areSeveral ? LastAccesses::kSeveral
                          : int(place.warp * kgpu::targetOf(self().machine->kernel).warpSize + place.lane);
  LastAccesses &last = self().machine->lastAccesses(address);
  if (last.barriers != self().barriers) {
    last = {};
    last.barriers = self().barriers;
  }
  auto race = [&](const LastAccesses::Last &before) {
    if (before.op && before.execution != execution && differs(before.thread, thread))
      other = before.op;
  };
  race(last.write);
  if (kind != Kind::Update)
    race(last.update);
  if (kind != Kind::Read)
    race(last.read);
  LastAccesses::Last &mine = kind == Kind::Read ? last.read : kind == Kind::Write ? last.write : last.update;
  bool isAnother = mine.op && differs(mine.thread, thread);
  mine = {&op, execution, isAnother ? LastAccesses::kSeveral : thread};
}

llvm::Error RaceCheck::error(const Frame &frame) const {
  if (!other)
    return llvm::Error::success();
  return frame.error(op, "no barrier separates this access from that of another thread by `" +
                             llvm::Twine(other->getName().getStringRef()) + "`");
}

/// Records the accesses through a view.
static llvm::Error check(Frame &frame, Operation &op) {
  using enum RaceCheck::Kind;
  auto at = [&](auto access, Value value, RaceCheck::Kind kind) {
    RaceCheck races(op, value, kind);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    forEachAddress(frame.view(access.getView()), integersOf(frame, access.getOffsets()),
                   type ? type.getShape() : ArrayRef<int64_t>(),
                   [&](int64_t i, char *address) { races.access(address, i); });
    return races.error(frame);
  };
  auto indexed = [&](auto access, Value value, RaceCheck::Kind kind) {
    RaceCheck races(op, value, kind);
    forEachIndexed(frame, frame.view(access.getView()), access.getIndices(), access.getMask(),
                   cast<RankedTensorType>(value.getType()).getNumElements(),
                   [&](int64_t i, char *address) { races.access(address, i); });
    return races.error(frame);
  };
  return llvm::TypeSwitch<Operation *, llvm::Error>(&op)
      .Case([&](tile::LoadOp load) { return at(load, load.getResult(), Read); })
      .Case([&](tile::StoreOp store) { return at(store, store.getValue(), Write); })
      .Case([&](tile::GatherOp gather) { return indexed(gather, gather.getResult(), Read); })
      .Case([&](tile::ScatterOp scatter) { return indexed(scatter, scatter.getValue(), Write); })
      .Case([&](tile::AtomicOp update) { return indexed(update, update.getValue(), Update); });
}

static llvm::Error checked(Frame &frame, Operation &op) {
  if (llvm::Error race = check(frame, op))
    return race;
  static const HandlerTable plain = [] {
    HandlerTable table = handlersOfTiles();
    addAsyncMemoryHandlers(table);
    return table;
  }();
  return plain.find(op.getName().getStringRef())->second(frame, op);
}

void kpkg::sim::addCheckedHandlers(HandlerTable &table) {
  for (const char *name : {"tile.load", "tile.store", "tile.gather", "tile.scatter", "tile.atomic"})
    table[name] = checked;
}
