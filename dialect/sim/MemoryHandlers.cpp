// Handles view queries, loads, stores, gather and scatter.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Addresses.h"
#include "dialect/sim/Elementwise.h"
#include <cmath>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;

static llvm::Error load(Frame &frame, Operation &op) {
  auto load = cast<tile::LoadOp>(op);
  const View &view = frame.view(load.getView());
  Tile result = Tile::ofType(load.getType());
  Cell fill = frame.tile(load.getFill()).cells[0];
  forEachAddress(view, integersOf(frame, load.getOffsets()), result.shape,
                 [&](int64_t i, char *address) { result.cells[i] = address ? loadCell(address, view.storage) : fill; });
  frame.set(load.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error store(Frame &frame, Operation &op) {
  auto store = cast<tile::StoreOp>(op);
  const View &view = frame.view(store.getView());
  const Tile &value = frame.tile(store.getValue());
  if (llvm::Error exceeded = frame.count(op, value.size()))
    return exceeded;
  forEachAddress(view, integersOf(frame, store.getOffsets()), value.shape, [&](int64_t i, char *address) {
    if (address)
      storeCell(address, value.cells[i], view.storage);
  });
  return llvm::Error::success();
}

static llvm::Error gather(Frame &frame, Operation &op) {
  auto gather = cast<tile::GatherOp>(op);
  const View &view = frame.view(gather.getView());
  Tile result = Tile::ofType(gather.getType());
  Cell fill = frame.tile(gather.getFill()).cells[0];
  forEachIndexed(frame, view, gather.getIndices(), gather.getMask(), result.size(),
                 [&](int64_t i, char *address) { result.cells[i] = address ? loadCell(address, view.storage) : fill; });
  frame.set(gather.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error scatter(Frame &frame, Operation &op) {
  auto scatter = cast<tile::ScatterOp>(op);
  const View &view = frame.view(scatter.getView());
  const Tile &value = frame.tile(scatter.getValue());
  if (llvm::Error exceeded = frame.count(op, value.size()))
    return exceeded;
  forEachIndexed(frame, view, scatter.getIndices(), scatter.getMask(), value.size(), [&](int64_t i, char *address) {
    if (address)
      storeCell(address, value.cells[i], view.storage);
  });
  return llvm::Error::success();
}

/// Returns the value that an atomic update leaves in memory.
static Cell updated(tile::AtomicKind kind, Type element, Cell old, Cell value) {
  using enum tile::AtomicKind;
  if (kind == Exchange || kind == CompareExchange)
    return value;
  Cell result;
  if (isFloat(element)) {
    bool isNan = std::isnan(old.f) || std::isnan(value.f);
    double chosen = kind == Add   ? old.f + value.f
                    : isNan       ? NAN
                    : kind == Max ? std::max(old.f, value.f)
                                  : std::min(old.f, value.f);
    result.f = roundTo(chosen, element);
    return result;
  }
  bool isLess =
      kind == UMax || kind == UMin ? static_cast<uint64_t>(old.i) < static_cast<uint64_t>(value.i) : old.i < value.i;
  result.i = kind == Add ? static_cast<int64_t>(static_cast<uint64_t>(old.i) + static_cast<uint64_t>(value.i))
             : (kind == Max || kind == UMax) == isLess ? value.i
                                                       : old.i;
  return result;
}

static llvm::Error addStore(Frame &frame, Operation &op) {
  auto store = cast<tile::AddStoreOp>(op);
  const View &view = frame.view(store.getView());
  const Tile &value = frame.tile(store.getValue());
  if (llvm::Error exceeded = frame.count(op, value.size()))
    return exceeded;
  forEachAddress(view, integersOf(frame, store.getOffsets()), value.shape, [&](int64_t i, char *address) {
    if (address)
      storeCell(address, updated(tile::AtomicKind::Add, view.storage, loadCell(address, view.storage), value.cells[i]),
                view.storage);
  });
  return llvm::Error::success();
}

/// Returns whether memory would hold the same bits for both.
static bool haveSameBits(Cell one, Cell other, Type element) {
  uint64_t bits = 0, others = 0;
  storeCell(reinterpret_cast<char *>(&bits), one, element);
  storeCell(reinterpret_cast<char *>(&others), other, element);
  return bits == others;
}

static llvm::Error atomic(Frame &frame, Operation &op) {
  auto atomic = cast<tile::AtomicOp>(op);
  const View &view = frame.view(atomic.getView());
  const Tile &value = frame.tile(atomic.getValue());
  if (llvm::Error exceeded = frame.count(op, value.size()))
    return exceeded;
  const Tile *expected = atomic.getExpected() ? &frame.tile(atomic.getExpected()) : nullptr;
  Tile before = Tile::ofType(atomic.getValue().getType());
  forEachIndexed(frame, view, atomic.getIndices(), atomic.getMask(), value.size(), [&](int64_t i, char *address) {
    if (!address)
      return;
    before.cells[i] = loadCell(address, view.storage);
    if (expected && !haveSameBits(before.cells[i], expected->cells[i], view.storage))
      return;
    storeCell(address, updated(atomic.getKind(), view.storage, before.cells[i], value.cells[i]), view.storage);
  });
  if (atomic.getOld())
    frame.set(atomic.getOld(), std::move(before));
  return llvm::Error::success();
}

static llvm::Error dim(Frame &frame, Operation &op) {
  auto query = cast<tile::DimOp>(op);
  frame.setInteger(query.getResult(), frame.view(query.getView()).shape[query.getDimension()]);
  return llvm::Error::success();
}

static llvm::Error stride(Frame &frame, Operation &op) {
  auto query = cast<tile::StrideOp>(op);
  frame.setInteger(query.getResult(), frame.view(query.getView()).strides[query.getDimension()]);
  return llvm::Error::success();
}

static llvm::Error scratch(Frame &frame, Operation &op) {
  auto scratch = cast<tile::ScratchOp>(op);
  View result;
  result.storage = scratch.getType().getElementType();
  if (frame.options.inDouble && isFloat(result.storage))
    result.storage = Float64Type::get(op.getContext());
  result.shape.assign(scratch.getShape().begin(), scratch.getShape().end());
  for (size_t d = 0; d < result.shape.size(); ++d)
    result.strides.push_back(scratch.getStride(int64_t(d)));
  result.data = frame.scratch(op, llvm::product_of(result.shape) * storageSize(result.storage));
  frame.set(scratch.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error drop(Frame &frame, Operation &op) {
  auto drop = cast<tile::DropOp>(op);
  const View &source = frame.view(drop.getView());
  View result{source.data, source.storage, {}, {}, source.exists};
  SmallVector<int64_t> indices = integersOf(frame, drop.getIndices());
  size_t dropped = 0;
  for (size_t d = 0; d < source.shape.size(); ++d) {
    if (dropped == indices.size() || drop.getDims()[dropped] != static_cast<int64_t>(d)) {
      result.shape.push_back(source.shape[d]);
      result.strides.push_back(source.strides[d]);
      continue;
    }
    int64_t index = indices[dropped++];
    if (index < 0 || index >= source.shape[d])
      result.exists = false;
    else if (result.exists && result.data)
      result.data += index * source.strides[d] * storageSize(source.storage);
  }
  frame.set(drop.getResult(), std::move(result));
  return llvm::Error::success();
}

static llvm::Error slice(Frame &frame, Operation &op) {
  auto slice = cast<tile::SliceOp>(op);
  View result = frame.view(slice.getView());
  int64_t dim = slice.getDimension(), extent = result.shape[dim];
  int64_t begin = std::clamp<int64_t>(frame.integer(slice.getBegin()), 0, extent);
  int64_t end = std::clamp<int64_t>(frame.integer(slice.getEnd()), begin, extent);
  result.shape[dim] = end - begin;
  if (result.exists && result.data)
    result.data += begin * result.strides[dim] * storageSize(result.storage);
  frame.set(slice.getResult(), std::move(result));
  return llvm::Error::success();
}

void kpkg::sim::addMemoryHandlers(HandlerTable &table) {
  table["tile.scratch"] = scratch;
  table["tile.load"] = load;
  table["tile.store"] = store;
  table["tile.gather"] = gather;
  table["tile.scatter"] = scatter;
  table["tile.atomic"] = atomic;
  table["tile.add_store"] = addStore;
  table["tile.dim"] = dim;
  table["tile.stride"] = stride;
  table["tile.drop"] = drop;
  table["tile.slice"] = slice;
}
