// Handles shared memory and tensor maps of the kgpu dialect in the simulator, byte for byte.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/async/Races.h"
#include <cstring>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;

static View bufferAt(char *data, kgpu::SharedType type) {
  return View{data, type.getElementType(), SmallVector<int64_t>(type.getShape()), {}, true};
}

static llvm::Error alloc(Frame &frame, Operation &op) {
  frame.set(op.getResult(0),
            bufferAt(self().machine->shared(op.getResult(0)), cast<kgpu::SharedType>(op.getResult(0).getType())));
  return llvm::Error::success();
}

static llvm::Error slot(Frame &frame, Operation &op) {
  auto slot = cast<kgpu::SlotOp>(op);
  kgpu::SharedType whole = slot.getBuffer().getType();
  int64_t index = frame.integer(slot.getIndex());
  if (index < 0 || index >= whole.getShape()[0])
    return frame.error(op, "slot " + llvm::Twine(index) + " is outside of " + llvm::Twine(whole.getShape()[0]));
  SmallVector<int64_t> first(whole.getShape().size(), 0);
  first[0] = index;
  frame.set(slot.getResult(), bufferAt(frame.view(slot.getBuffer()).data + whole.getPlacement().offset(first),
                                       slot.getResult().getType()));
  return llvm::Error::success();
}

static llvm::Error reshapeBuffer(Frame &frame, Operation &op) {
  frame.set(op.getResult(0),
            bufferAt(frame.view(op.getOperand(0)).data, cast<kgpu::SharedType>(op.getResult(0).getType())));
  return llvm::Error::success();
}

static llvm::Error sliceBuffer(Frame &frame, Operation &op) {
  auto slice = cast<kgpu::SliceBufferOp>(op);
  frame.set(slice.getResult(), bufferAt(frame.view(slice.getBuffer()).data + slice.getOffsetBytes(), slice.getType()));
  return llvm::Error::success();
}

static llvm::Error viewBuffer(Frame &frame, Operation &op) {
  auto view = cast<kgpu::ViewBufferOp>(op);
  View result = bufferAt(frame.view(view.getBuffer()).data, view.getBuffer().getType());
  result.strides.assign(result.shape.size(), 1);
  for (size_t d = result.shape.size(); --d > 0;)
    result.strides[d - 1] = result.strides[d] * result.shape[d];
  frame.set(view.getResult(), std::move(result));
  return llvm::Error::success();
}

/// Calls `function(i, address, coordinates)` for each element of a tile in a buffer.
template <typename Function>
static void forEachPlace(char *base, kgpu::SharedType type, ArrayRef<int64_t> shape, Function function) {
  layout::SharedLayout placement = type.getPlacement();
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0, count = llvm::product_of(shape); i < count; ++i) {
    function(i, base + placement.offset(index), ArrayRef<int64_t>(index));
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];)
      index[d] = 0;
  }
}

static llvm::Error localStore(Frame &frame, Operation &op) {
  auto store = cast<kgpu::LocalStoreOp>(op);
  const Tile &tile = frame.tile(store.getValue());
  kgpu::SharedType type = store.getBuffer().getType();
  // Each warpgroup stores only the elements that it holds. A warpgroup that reads without waiting for the others finds
  // old data.
  const layout::Layout &layout = kgpu::layoutOf(store.getValue());
  RaceCheck races(op, store.getValue(), RaceCheck::Kind::Write);
  forEachPlace(frame.view(store.getBuffer()).data, type, tile.shape,
               [&](int64_t i, char *address, ArrayRef<int64_t> index) {
                 races.access(address, index);
                 if (self().machine->holds(self(), layout, index))
                   storeCell(address, tile.cells[i], type.getElementType());
               });
  if (llvm::Error race = races.error(frame))
    return race;
  return self().machine->pause(op);
}

static llvm::Error localLoad(Frame &frame, Operation &op) {
  auto load = cast<kgpu::LocalLoadOp>(op);
  kgpu::SharedType type = load.getBuffer().getType();
  Tile tile = Tile::ofType(load.getResult().getType());
  RaceCheck races(op, load.getResult(), RaceCheck::Kind::Read);
  forEachPlace(frame.view(load.getBuffer()).data, type, tile.shape,
               [&](int64_t i, char *address, ArrayRef<int64_t> index) {
                 races.access(address, index);
                 tile.cells[i] = loadCell(address, type.getElementType());
               });
  if (llvm::Error race = races.error(frame))
    return race;
  frame.set(load.getResult(), std::move(tile));
  return self().machine->pause(op);
}

/// XORs bits 4 to 6 of an address with bits 7 to 9, as far as the swizzle reaches.
static uintptr_t swizzled(uintptr_t address, int64_t swizzle) {
  uintptr_t mask = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

static kgpu::TensorMapAttr mapOf(Operation &op, int64_t number) {
  auto maps = op.getParentOfType<tile::KernelOp>()->getAttrOfType<ArrayAttr>(kgpu::kTensorMapsAttribute);
  return maps && number < int64_t(maps.size()) ? dyn_cast<kgpu::TensorMapAttr>(maps[size_t(number)])
                                               : kgpu::TensorMapAttr();
}

/// Returns the bytes of a box as TMA writes them, with zeros outside the view.
static std::vector<std::pair<char *, std::string>> boxOf(const View &view, ArrayRef<int64_t> offsets,
                                                         kgpu::TensorMapAttr map, unsigned unit, char *to) {
  SmallVector<unsigned> order = map.order(unit);
  ArrayRef<int64_t> box = map.getBox();
  int64_t bytes = storageSize(view.storage), rowBytes = box[unit] * bytes;
  std::vector<std::pair<char *, std::string>> result;
  SmallVector<int64_t> index(box.size(), 0);
  for (int64_t i = 0, count = llvm::product_of(box); i < count; ++i) {
    const char *from = view.data;
    bool isInside = true;
    for (size_t d = 0; d < box.size(); ++d) {
      int64_t coordinate = offsets[d] + index[d];
      isInside &= coordinate >= 0 && coordinate < view.shape[d];
      from += isInside ? coordinate * view.strides[d] * bytes : 0;
    }
    int64_t row = i / box[unit], column = i % box[unit];
    uintptr_t address =
        swizzled(reinterpret_cast<uintptr_t>(to) + uintptr_t(row * rowBytes + column * bytes), map.getSwizzle());
    result.emplace_back(reinterpret_cast<char *>(address),
                        isInside ? std::string(from, size_t(bytes)) : std::string(size_t(bytes), '\0'));
    for (unsigned d : order) {
      if (++index[d] < box[d])
        break;
      index[d] = 0;
    }
  }
  return result;
}

/// Returns a row of the box's unit dimension at `place`, placed as row number `row` of the box.
static std::vector<std::pair<char *, std::string>>
rowOf(const View &view, ArrayRef<int64_t> place, kgpu::TensorMapAttr map, unsigned unit, char *to, int64_t row) {
  SmallVector<int64_t> box(map.getBox().size(), 1);
  box[unit] = map.getBox()[unit];
  auto one = kgpu::TensorMapAttr::get(map.getContext(), map.getArg(), box, map.getSwizzle(), kgpu::WindowAttr());
  return boxOf(view, place, one, unit, to + row * box[unit] * storageSize(view.storage));
}

static SmallVector<int64_t> integersOf(Frame &frame, ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) { return frame.integer(value); });
}

/// Returns the positions of a window's box in the view (im2col), one for each pixel, starting at the first pixel.
static std::vector<SmallVector<int64_t>> windowPlaces(Frame &frame, kgpu::TensorLoadOp load, kgpu::TensorMapAttr map,
                                                      ArrayRef<int64_t> offsets) {
  kgpu::WindowAttr window = map.getWindow();
  auto argument = [&](int64_t number) {
    return frame.integer(load->getParentOfType<tile::KernelOp>().getArgument(unsigned(number)));
  };
  SmallVector<int64_t> taps = integersOf(frame, load.getTaps()), at(offsets);
  std::vector<SmallVector<int64_t>> places;
  for (int64_t pixel = 0; pixel < map.getBox().front(); ++pixel) {
    SmallVector<int64_t> place(at);
    for (size_t d = 0; d < taps.size(); ++d)
      place[d + 1] += taps[d];
    places.push_back(place);
    size_t d = taps.size();
    for (; d > 0; --d) {
      int64_t start = argument(window.getStarts()[d - 1]), stride = argument(window.getStrides()[d - 1]);
      at[d] += stride;
      if (at[d] < start + argument(window.getCounts()[d - 1]) * stride)
        break;
      at[d] = start;
    }
    at[0] += d == 0;
  }
  return places;
}

static llvm::Error tensorLoad(Frame &frame, Operation &op) {
  auto load = cast<kgpu::TensorLoadOp>(op);
  Machine &machine = *self().machine;
  kgpu::TensorMapAttr map = mapOf(op, int64_t(load.getMap()));
  auto view = cast<tile::ViewType>(load.getView().getType());
  if (!map || map.getArg() != cast<BlockArgument>(load.getView()).getArgNumber() ||
      int64_t(map.getBox().size()) != view.getRank() || view.getUnit() < 0)
    return frame.error(op, "has no tensor map of its view");
  const View &source = frame.view(load.getView());
  if (source.strides[size_t(view.getUnit())] != 1)
    return frame.error(op, "copies from a view whose unit dimension has another stride");
  char *to = frame.view(load.getBuffer()).data + load.getDistance();
  int64_t bytes = llvm::product_of(map.getBox()) * storageSize(source.storage),
          rank = load.getMulticast() ? self().cta : 0;
  to += rank * bytes;
  if (int64_t(load.getDistance()) + (rank + 1) * bytes > load.getBuffer().getType().getSizeBytes())
    return frame.error(op, "writes behind the end of its buffer");
  Ring &ring = machine.ring(load.getRing(), load.getRing().getType().getSlots());
  int64_t slot = int64_t(uint32_t(frame.integer(load.getUse()))) % ring.slots();
  SmallVector<int64_t> offsets = integersOf(frame, load.getOffsets());
  if (load.getMulticast())
    offsets[*load.getMulticast()] += rank * map.getBox()[*load.getMulticast()];
  // The data is read now and written at the end. Until then the destination may still be read, and the source does not
  // change.
  std::vector<std::pair<char *, std::string>> content;
  if (map.getWindow()) {
    if (load.getTaps().size() != map.getWindow().getCounts().size())
      return frame.error(op, "is not moved along all extents of its window");
    for (const auto &[row, place] : llvm::enumerate(windowPlaces(frame, load, map, offsets)))
      llvm::append_range(content, rowOf(source, place, map, unsigned(view.getUnit()), to, int64_t(row)));
  } else {
    content = boxOf(source, offsets, map, unsigned(view.getUnit()), to);
  }
  for (int cta = 0; cta < machine.ctaCount(); ++cta) {
    if (cta != self().cta && !load.getMulticast())
      continue;
    Ring &filled = machine.ring(cta, load.getRing(), ring.slots());
    auto placed = content;
    for (auto &[address, text] : placed)
      address = machine.inCta(cta, address);
    machine.start({[placed = std::move(placed), &filled, slot, bytes] {
      for (const auto &[address, text] : placed)
        std::memcpy(address, text.data(), text.size());
      filled.full[slot].complete(bytes);
    }});
  }
  return machine.pause(op);
}

/// How a warpgroup writes a tile. `All` writes the whole tile, which must be the same in all warpgroups. `Own` writes
/// its own part, and `Adding` adds its own part to memory.
enum class Writing { All, Own, Adding };

static llvm::Error writeTile(Frame &frame, Operation &op, const View &view, ArrayRef<int64_t> offsets, const Tile &tile,
                             Writing how) {
  if (self().isLoader())
    return frame.error(op, "the load role computes nothing");
  // A tile with fewer dimensions than the view covers the view's last dimensions.
  SmallVector<int64_t> shape(view.shape.size() - tile.shape.size(), 1), index(view.shape.size(), 0);
  llvm::append_range(shape, tile.shape);
  for (int64_t i = 0; i < tile.size(); ++i) {
    char *address = view.exists ? view.data : nullptr;
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t coordinate = offsets[d] + index[d];
      address = address && coordinate >= 0 && coordinate < view.shape[d]
                    ? address + coordinate * view.strides[d] * storageSize(view.storage)
                    : nullptr;
    }
    if (how != Writing::All && !self().machine->owns(self(), tile.shape, i / tile.shape[1], i % tile.shape[1]))
      address = nullptr;
    Cell cell = tile.cells[i];
    if (address && how == Writing::Adding)
      cell.f = double(float(loadCell(address, view.storage).f + cell.f));
    if (address && how == Writing::Adding)
      storeCell(address, cell, view.storage);
    else if (address && !self().machine->write(address, cell, view.storage))
      return frame.error(op, "warpgroups disagree about an element");
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];)
      index[d] = 0;
  }
  return self().machine->pause(op);
}

static llvm::Error tensorStore(Frame &frame, Operation &op) {
  auto store = cast<kgpu::TensorStoreOp>(op);
  return writeTile(frame, op, frame.view(store.getView()), integersOf(frame, store.getOffsets()),
                   frame.tile(store.getValue()), store.getAdds() ? Writing::Adding : Writing::Own);
}
static llvm::Error tileStore(Frame &frame, Operation &op) {
  auto store = cast<tile::StoreOp>(op);
  return writeTile(frame, op, frame.view(store.getView()), integersOf(frame, store.getOffsets()),
                   frame.tile(store.getValue()), Writing::All);
}

void kpkg::sim::addAsyncMemoryHandlers(HandlerTable &table) {
  table["kgpu.alloc"] = alloc;
  table["kgpu.slot"] = slot;
  table["kgpu.reshape_buffer"] = reshapeBuffer;
  table["kgpu.transpose_buffer"] = reshapeBuffer;
  table["kgpu.slice_buffer"] = sliceBuffer;
  table["kgpu.view_buffer"] = viewBuffer;
  table["kgpu.local_store"] = localStore;
  table["kgpu.local_load"] = localLoad;
  table["kgpu.tensor_load"] = tensorLoad;
  table["kgpu.tensor_store"] = tensorStore;
  table["tile.store"] = tileStore;
}
