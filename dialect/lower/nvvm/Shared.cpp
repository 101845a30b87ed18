// Emits buffers in shared memory, and tile accesses to them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/MatrixLoad.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/SharedMemory.h"
#include "dialect/lower/nvvm/Words.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

/// Returns the widest vector access for a buffer. It is less than 16 bytes in slots whose size is no multiple of 16,
/// and in parts that begin elsewhere.
static unsigned vectorBytesIn(Value buffer) {
  int64_t bytes = 16;
  for (Operation *op = buffer.getDefiningOp(); Value whole = kgpu::aliasedBuffer(op); op = whole.getDefiningOp()) {
    int64_t distance = 0;
    if (auto slot = dyn_cast<kgpu::SlotOp>(op))
      distance = slot.getType().getSizeBytes();
    else if (auto slice = dyn_cast<kgpu::SliceBufferOp>(op))
      distance = slice.getOffsetBytes();
    if (distance != 0)
      bytes = std::min(bytes, distance & -distance);
  }
  return static_cast<unsigned>(bytes);
}

LogicalResult Emitter::emitAlloc(kgpu::AllocOp op) {
  if (!op.getOffset())
    return op.emitOpError("has no offset yet: shared memory is not allocated");
  if (!sharedMemory)
    return op.emitOpError("is in a kernel whose launch has no shared memory");
  Value address = LLVM::GEPOp::create(builder, sharedMemory.getType(), builder.getI8Type(), sharedMemory,
                                      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(*op.getOffset())});
  define(op, {address});
  return success();
}

LogicalResult Emitter::emitSlot(kgpu::SlotOp op) {
  auto buffer = cast<kgpu::SharedType>(op.getBuffer().getType());
  SmallVector<int64_t> second(buffer.getShape().size(), 0);
  second.front() = 1;
  int64_t bytes = buffer.getShape().front() > 1 ? buffer.getPlacement().offset(second) : 0;
  Value index = arith::IndexCastOp::create(builder, builder.getI32Type(), scalar(op.getIndex()));
  Value distance = arith::MulIOp::create(builder, index, constantOf(builder, bytes));
  Value base = scalar(op.getBuffer());
  define(op,
         {LLVM::GEPOp::create(builder, base.getType(), builder.getI8Type(), base, ValueRange{distance}).getResult()});
  return success();
}

LogicalResult Emitter::emitSliceBuffer(kgpu::SliceBufferOp op) {
  return emitAs(op, {sharedElement(scalar(op.getBuffer()), constantOf(builder, op.getOffsetBytes()))});
}

LogicalResult Emitter::emitViewBuffer(kgpu::ViewBufferOp op) {
  ArrayRef<int64_t> shape = op.getBuffer().getType().getShape();
  View whole;
  whole.type = op.getType();
  whole.pointer = scalar(op.getBuffer());
  int64_t stride = llvm::product_of(shape);
  for (int64_t extent : shape) {
    whole.shape.push_back(arith::ConstantIndexOp::create(builder, extent));
    whole.stride.push_back(arith::ConstantIndexOp::create(builder, stride /= extent));
  }
  views[op.getResult()] = whole;
  return success();
}

/// Returns whether the place of an element is a sum of coordinates times strides.
static bool hasStrides(kgpu::SharedType buffer) {
  return !buffer.getMemory() ||
         llvm::all_of(buffer.getMemory()->parameters().bases, [](const auto &bases) { return bases.empty(); });
}

/// Returns the byte offset of register `reg`'s element in a buffer with strides, and whether the element exists (null:
/// it does). Serves layouts that do not match the buffer's powers of two.
std::pair<Value, Value> Emitter::placeByStrides(const layout::Layout &layout, kgpu::SharedType buffer, unsigned reg) {
  Value distance = constantOf(builder, 0), inside;
  int64_t rowMajor = buffer.getElementBytes();
  for (unsigned dim = layout.rank(); dim-- > 0; rowMajor *= buffer.getShape()[dim]) {
    int64_t stride = buffer.getMemory() ? buffer.getMemory()->parameters().strides[dim] : rowMajor;
    Value coordinate = place.coordinate(builder, layout, reg, dim);
    Value step = arith::MulIOp::create(builder, coordinate, constantOf(builder, stride));
    distance = arith::AddIOp::create(builder, distance, step);
    int64_t extent = buffer.getShape()[dim];
    if (layout.shape()[dim] <= extent)
      continue;
    Value below = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, coordinate, constantOf(builder, extent));
    inside = inside ? arith::AndIOp::create(builder, inside, below).getResult() : below;
  }
  return {distance, inside};
}

Value Emitter::sharedElement(Value base, Value distance) {
  return LLVM::GEPOp::create(builder, base.getType(), builder.getI8Type(), base, ValueRange{distance});
}

LogicalResult Emitter::emitLocalStore(kgpu::LocalStoreOp op) {
  return storeToBuffer(op, op.getValue(), op.getBuffer());
}

/// Writes each register to the offset of its element behind `bases`, if the element exists and `first` holds.
static void storeOneByOne(ImplicitLocOpBuilder &builder, ValueRange registers,
                          llvm::function_ref<std::pair<Value, Value>(unsigned)> placeOf, ArrayRef<Value> bases,
                          Value first, unsigned elementBytes) {
  for (auto [reg, value] : llvm::enumerate(registers)) {
    auto [distance, stores] = placeOf(reg);
    if (first)
      stores = stores ? arith::AndIOp::create(builder, stores, first).getResult() : first;
    OpBuilder::InsertionGuard guard(builder);
    if (stores)
      builder.setInsertionPointToStart(scf::IfOp::create(builder, stores, /*withElseRegion=*/false).thenBlock());
    Value bits = bitsOfElement(builder, value);
    for (Value base : bases) {
      Value address = LLVM::GEPOp::create(builder, base.getType(), builder.getI8Type(), base, ValueRange{distance});
      LLVM::StoreOp::create(builder, bits, address, elementBytes);
    }
  }
}

/// Writes a tile to a buffer, each element once.
LogicalResult Emitter::storeToBuffer(Operation *op, Value tile, Value to) {
  const layout::Layout &layout = kgpu::layoutOf(tile);
  auto buffer = cast<kgpu::SharedType>(to.getType());
  llvm::Expected<layout::SharedAccess> access = layout::planAccess(layout, buffer.getPlacement(), vectorBytesIn(to));
  // Every CTA of a cluster fills its own buffer, including elements that other CTAs hold too.
  Value base = scalar(to), first = place.isFirstInCta(layout);
  if (access) {
    storeShared(builder, *access, base, place.bits(layout), registersOf(tile), first);
    return success();
  }
  if (!hasStrides(buffer))
    return op->emitOpError() << "cannot reach its buffer: " << llvm::toString(access.takeError());
  llvm::consumeError(access.takeError());
  auto placeOf = [&](unsigned reg) { return placeByStrides(layout, buffer, reg); };
  storeOneByOne(builder, registersOf(tile), placeOf, base, first, buffer.getElementBytes());
  return success();
}

LogicalResult Emitter::emitRemoteStore(kgpu::RemoteStoreOp op) {
  const layout::Layout &layout = kgpu::layoutOf(op.getValue());
  auto buffer = cast<kgpu::SharedType>(op.getBuffer().getType());
  llvm::Expected<layout::SharedAccess> access =
      layout::planAccess(layout, buffer.getPlacement(), vectorBytesIn(op.getBuffer()));
  if (!access && !hasStrides(buffer))
    return op.emitOpError() << "cannot reach its buffer: " << llvm::toString(access.takeError());
  Value first = place.isFirstReplica(layout);
  SmallVector<Value> bases;
  for (unsigned rank = 0; rank < launch.cluster; ++rank)
    bases.push_back(sharedOfCta(builder, scalar(op.getBuffer()), rank));
  if (access) {
    for (Value base : bases)
      storeShared(builder, *access, base, place.bits(layout), registersOf(op.getValue()), first);
    return success();
  }
  llvm::consumeError(access.takeError());
  auto placeOf = [&](unsigned reg) { return placeByStrides(layout, buffer, reg); };
  storeOneByOne(builder, registersOf(op.getValue()), placeOf, bases, first, buffer.getElementBytes());
  return success();
}

/// Loads the registers of a tile of `element`s by ldmatrix.
static SmallVector<Value> loadMatrixTile(ImplicitLocOpBuilder &builder, const layout::MatrixLoad &load, Value base,
                                         const ThreadBits &thread, Type element, unsigned registers) {
  SharedAddresses addresses(builder, load.rows, base, thread);
  SmallVector<Value> values(registers);
  for (auto [vector, words] : llvm::zip_equal(load.rows.vectors, load.words)) {
    SmallVector<Value> loaded = loadMatrices(builder, addresses.of(vector), words.size(), load.isTransposed);
    for (auto [word, held] : llvm::zip_equal(loaded, words))
      for (auto [reg, value] : llvm::zip_equal(held, unpackWords(builder, word, element, held.size())))
        values[reg] = value;
  }
  return values;
}

LogicalResult Emitter::emitLocalLoad(kgpu::LocalLoadOp op) {
  const layout::Layout &layout = kgpu::layoutOf(op.getResult());
  auto buffer = cast<kgpu::SharedType>(op.getBuffer().getType());
  ArrayRef<int64_t> at = op.getAt().value_or(ArrayRef<int64_t>());
  Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
  Value base = scalar(op.getBuffer());
  unsigned vectorBytes = vectorBytesIn(op.getBuffer());
  llvm::Expected<layout::SharedAccess> access = layout::planAccess(layout, buffer.getPlacement(), vectorBytes, at);
  std::optional<layout::MatrixLoad> matrices;
  if (kgpu::targetOf(kernel).hasMmaSync && launch.blocks == 1 && access && vectorBytes >= 16)
    matrices = layout::planMatrixLoad(layout, buffer.getPlacement(), at);
  if (matrices && matrices->rows.vectors.size() < access->vectors.size() &&
      layout::countWavefronts(matrices->rows) <= layout::countWavefronts(*access)) {
    define(op,
           TileRegisters(loadMatrixTile(builder, *matrices, base, place.bits(layout), element, layout.registers())));
    return success();
  }
  if (access) {
    define(op, TileRegisters(loadShared(builder, *access, base, place.bits(layout), element)));
    return success();
  }
  if (!hasStrides(buffer) || op.getAt())
    return op.emitOpError() << "cannot reach its buffer: " << llvm::toString(access.takeError());
  llvm::consumeError(access.takeError());
  TileRegisters bits;
  for (unsigned reg = 0; reg < layout.registers(); ++reg) {
    auto [distance, inside] = placeByStrides(layout, buffer, reg);
    // Values in padding do not matter, so such registers read the first element.
    if (inside)
      distance = arith::SelectOp::create(builder, inside, distance, constantOf(builder, 0));
    bits.push_back(LLVM::LoadOp::create(builder, builder.getIntegerType(8 * buffer.getElementBytes()),
                                        sharedElement(base, distance), buffer.getElementBytes()));
  }
  for (Value &value : bits)
    value = elementOfBits(builder, value, element);
  define(op, std::move(bits));
  return success();
}

} // namespace kpkg::lower::nvvm
