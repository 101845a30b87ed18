// Emits loads and stores of tiles in global memory, as vectors of up to 16 bytes with one predicate each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/TileAccess.h"
#include "dialect/lower/nvvm/Words.h"
#include "dialect/tile/transforms/RowGathers.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

using layout::Layout;

LogicalResult Emitter::emitDrop(tile::DropOp op) {
  const View source = view(op.getView());
  View part;
  part.type = op.getResult().getType();
  part.valid = source.valid;
  Type i64 = builder.getI64Type();
  Value distance;
  for (auto [dim, original] : llvm::zip(op.getDims(), op.getIndices())) {
    Value index = scalar(original);
    // An unsigned comparison also excludes negative indices.
    Value inside = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, index, source.shape[dim]);
    part.valid = part.valid ? arith::AndIOp::create(builder, part.valid, inside).getResult() : inside;
    // Products that overflow 32 bits then belong to elements outside the view, which are not accessed.
    auto factor = [&](Value value) {
      return source.type.getFacts().hasSmallOffsets()
                 ? arith::IndexCastOp::create(builder, builder.getI32Type(), value).getResult()
                 : value;
    };
    Value step = arith::MulIOp::create(builder, factor(index), factor(source.stride[dim]));
    distance = distance ? arith::AddIOp::create(builder, distance, step).getResult() : step;
  }
  if (distance && !distance.getType().isIndex())
    distance = arith::IndexCastOp::create(builder, builder.getIndexType(), distance);
  Type element = builder.getIntegerType(8 * source.type.getElementBytes());
  part.pointer = source.pointer;
  if (distance)
    part.pointer = LLVM::GEPOp::create(builder, source.pointer.getType(), element, source.pointer,
                                       ValueRange{arith::IndexCastOp::create(builder, i64, distance).getResult()});
  for (int64_t dim = 0; dim < source.type.getRank(); ++dim)
    if (!llvm::is_contained(op.getDims(), dim)) {
      part.shape.push_back(source.shape[dim]);
      part.stride.push_back(source.stride[dim]);
    }
  views[op.getResult()] = part;
  return success();
}

LogicalResult Emitter::emitSlice(tile::SliceOp op) {
  View part = view(op.getView());
  int64_t dim = op.getDimension();
  Value extent = part.shape[dim], zero = arith::ConstantIndexOp::create(builder, 0);
  auto clipped = [&](Value coordinate, Value least) -> Value {
    return arith::MinSIOp::create(builder, arith::MaxSIOp::create(builder, coordinate, least), extent);
  };
  Value begin = clipped(scalar(op.getBegin()), zero), end = clipped(scalar(op.getEnd()), begin);
  part.type = op.getResult().getType();
  part.shape[dim] = arith::SubIOp::create(builder, end, begin);
  Value distance = arith::IndexCastOp::create(builder, builder.getI64Type(),
                                              arith::MulIOp::create(builder, begin, part.stride[dim]));
  part.pointer =
      LLVM::GEPOp::create(builder, part.pointer.getType(), builder.getIntegerType(8 * part.type.getElementBytes()),
                          part.pointer, ValueRange{distance});
  views[op.getResult()] = part;
  return success();
}

/// Returns whether the memory of a view is constant while the kernel runs. A kernel that starts before its predecessor
/// has ended may see the predecessor's writes to its own read-only arguments.
bool Emitter::isNeverWritten(const View &part) { return !part.type.getIsMut() && !launch.overlaps; }

/// Returns an i1: whether a view of rank 0 has its element.
Value Emitter::hasElement(const View &part) {
  // Indexed elements of an argument exist only where it has extents. In shared memory 0 is an address, and a CTA runs
  // one block.
  if (part.valid && !inGrid)
    return part.valid;
  if (isShared(part.pointer))
    return part.valid ? part.valid : arith::ConstantIntOp::create(builder, builder.getI1Type(), 1).getResult();
  Value null = LLVM::ZeroOp::create(builder, part.pointer.getType());
  Value there = LLVM::ICmpOp::create(builder, LLVM::ICmpPredicate::ne, part.pointer, null);
  if (part.valid)
    there = arith::AndIOp::create(builder, there, part.valid);
  return inGrid ? arith::AndIOp::create(builder, there, inGrid).getResult() : there;
}

namespace {
/// Repeats `element` in every part of a word of that size, in the word types of viewLoad.
Value repeatedInWord(ImplicitLocOpBuilder &builder, Value element, unsigned wordBytes) {
  Value bits = bitsOfElement(builder, element);
  unsigned width = bits.getType().getIntOrFloatBitWidth();
  Type word = builder.getIntegerType(std::max(8 * wordBytes, 16u));
  if (width < word.getIntOrFloatBitWidth())
    bits = arith::ExtUIOp::create(builder, word, bits);
  for (unsigned filled = width; filled < 8 * wordBytes; filled *= 2) {
    Value shift = arith::ConstantOp::create(builder, builder.getIntegerAttr(word, filled));
    bits = arith::OrIOp::create(builder, bits, arith::ShLIOp::create(builder, bits, shift));
  }
  return bits;
}

SmallVector<Value> unpackElements(ImplicitLocOpBuilder &builder, ValueRange words, Type element, unsigned count) {
  if (words.front().getType().isInteger(32) && bytesOf(element) <= 4)
    return unpackWords(builder, words, element, count);
  SmallVector<Value> elements;
  Type bits = builder.getIntegerType(8 * bytesOf(element));
  for (Value word : words) {
    Value narrow = word.getType() == bits ? word : arith::TruncIOp::create(builder, bits, word).getResult();
    elements.push_back(elementOfBits(builder, narrow, element));
  }
  return elements;
}

} // namespace

LogicalResult Emitter::emitLoad(tile::LoadOp op) {
  const View &part = view(op.getView());
  Type element = part.type.getElementType();
  bool isConstant = isNeverWritten(part);
  unsigned bytes = part.type.getElementBytes();
  Value fill = scalar(op.getFill());
  auto type = dyn_cast<RankedTensorType>(op.getResult().getType());
  if (!type && isGeneric(part.pointer))
    return emitGenericLoad(op, fill);
  if (!type) {
    SmallVector<Value> words = ptx::viewLoad(builder, part.pointer, hasElement(part), bytes, 1,
                                             repeatedInWord(builder, fill, bytes), isConstant);
    define(op, {unpackElements(builder, words, element, 1).front()});
    return success();
  }
  const Layout &layout = kgpu::layoutOf(op.getResult());
  TileAccess access(*this, part, op.getOffsets(), type, layout);
  auto groups = access.groups();
  unsigned wordBytes = wordBytesOf(bytes, groups.front().size());
  Value fillWord = repeatedInWord(builder, fill, wordBytes);
  // Issues all loads before their first use, to have as many as possible in flight.
  SmallVector<SmallVector<Value>> words;
  for (ArrayRef<unsigned> group : groups)
    words.push_back(ptx::viewLoad(builder, access.address(group.front()), access.mask(group.front()), wordBytes,
                                  group.size() * bytes / wordBytes, fillWord, isConstant));
  TileRegisters values(layout.registers());
  for (auto [group, loaded] : llvm::zip(groups, words))
    for (auto [reg, value] : llvm::zip(group, unpackElements(builder, loaded, element, group.size())))
      values[reg] = value;
  define(op, std::move(values));
  return success();
}

/// Returns how many contiguous elements of a row one access covers. They are all inside the view, or all outside.
static unsigned elementsTogether(tile::ViewType view, ValueRange indices, Value mask, RankedTensorType type,
                                 const Layout &layout) {
  int64_t longest = mask ? 1 : tile::neighboursOf(view, indices, type.getShape());
  return longest == 1 ? 1 : layout.vectorLength(1, longest);
}

LogicalResult Emitter::emitGather(tile::GatherOp op) {
  const View &part = view(op.getView());
  auto type = cast<RankedTensorType>(op.getResult().getType());
  const Layout &layout = kgpu::layoutOf(type);
  auto groups = layout.vectors(1 < type.getRank() ? 1 : 0,
                               elementsTogether(part.type, op.getIndices(), op.getMask(), type, layout));
  unsigned bytes = part.type.getElementBytes(), wordBytes = wordBytesOf(bytes, groups.front().size());
  Value fill = repeatedInWord(builder, scalar(op.getFill()), wordBytes);
  // Issues all loads before their first use.
  SmallVector<SmallVector<Value>> words;
  for (ArrayRef<unsigned> group : groups) {
    auto [pointer, inside] = elementAt(part, op.getIndices(), op.getMask(), type, group.front());
    words.push_back(ptx::viewLoad(builder, pointer, inside, wordBytes, group.size() * bytes / wordBytes, fill,
                                  isNeverWritten(part)));
  }
  TileRegisters values(layout.registers());
  for (auto [group, loaded] : llvm::zip(groups, words))
    for (auto [reg, value] : llvm::zip(group, unpackElements(builder, loaded, type.getElementType(), group.size())))
      values[reg] = value;
  define(op, std::move(values));
  return success();
}

LogicalResult Emitter::emitScatter(tile::ScatterOp op) {
  const View &part = view(op.getView());
  auto type = cast<RankedTensorType>(op.getValue().getType());
  const Layout &layout = kgpu::layoutOf(type);
  auto groups = layout.vectors(1 < type.getRank() ? 1 : 0,
                               elementsTogether(part.type, op.getIndices(), op.getMask(), type, layout));
  unsigned wordBytes = wordBytesOf(part.type.getElementBytes(), groups.front().size());
  Value first = place.isFirstReplica(layout);
  ValueRange held = registersOf(op.getValue());
  for (ArrayRef<unsigned> group : groups) {
    auto [pointer, inside] = elementAt(part, op.getIndices(), op.getMask(), type, group.front());
    if (first)
      inside = inside ? arith::AndIOp::create(builder, inside, first).getResult() : first;
    SmallVector<Value> elements;
    for (unsigned reg : group)
      elements.push_back(held[reg]);
    ptx::viewStore(builder, pointer, inside, wordBytes, packElements(builder, elements, wordBytes));
  }
  return success();
}

LogicalResult Emitter::emitStore(tile::StoreOp op) {
  const View &part = view(op.getView());
  unsigned bytes = part.type.getElementBytes();
  auto type = dyn_cast<RankedTensorType>(op.getValue().getType());
  if (!type) {
    Value mask = hasElement(part);
    if (isGeneric(part.pointer))
      return emitGenericStore(op, mask);
    layout::Layout::Fields one; // At thread level each thread has a value of its own.
    Value first = tile::isOfThreads(kernel) ? Value() : place.isFirstReplica(layout::Layout::make(one));
    if (first)
      mask = arith::AndIOp::create(builder, mask, first);
    ptx::viewStore(builder, part.pointer, mask, bytes, packElements(builder, registersOf(op.getValue()), bytes));
    return success();
  }
  const Layout &layout = kgpu::layoutOf(op.getValue());
  TileAccess access(*this, part, op.getOffsets(), type, layout);
  auto groups = access.groups();
  unsigned wordBytes = wordBytesOf(bytes, groups.front().size());
  Value first = place.isFirstReplica(layout);
  ValueRange held = registersOf(op.getValue());
  for (ArrayRef<unsigned> group : groups) {
    SmallVector<Value> elements;
    for (unsigned reg : group)
      elements.push_back(held[reg]);
    Value mask = access.mask(group.front());
    if (first)
      mask = arith::AndIOp::create(builder, mask, first);
    ptx::viewStore(builder, access.address(group.front()), mask, wordBytes, packElements(builder, elements, wordBytes));
  }
  return success();
}

} // namespace kpkg::lower::nvvm
