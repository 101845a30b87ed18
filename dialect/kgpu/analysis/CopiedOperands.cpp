// Determines the tiles that the producer warp copies into ring buffers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/CopiedOperands.h"
#include "dialect/kgpu/analysis/Slices.h"

using namespace mlir;

namespace kpkg::kgpu {

static constexpr int64_t kFewestBytes = 128, kMostBytes = 16384; // of a row that pays for a copy

bool haveOneRing(const Stream &left, const Stream &right) {
  return left.members.size() == right.members.size() &&
         llvm::all_of_zip(left.members, right.members, [](const Member &one, const Member &other) {
           const TensorView &first = one.operand.place, &second = other.operand.place;
           return one.slot == other.slot && first.argument == second.argument && first.box == second.box &&
                  first.window == second.window;
         });
}

/// Returns the ring member for an operand of a product that reads `tile`.
static Member memberFor(const StreamedOperand &operand, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  unsigned bytes = elementBytes(type.getElementType());
  return {operand,
          SharedType::get(type.getShape(), type.getElementType(), *panelsOf(type.getShape(), operand.panelDim, bytes))};
}

std::optional<TensorView> rowPlace(tile::LoadOp load) {
  return tensorView(load.getView(), load.getOffsets(), cast<RankedTensorType>(load.getType()).getShape()).toOptional();
}

/// Returns the ring member for a row that arithmetic between the products reads, and that is the same for all rows of
/// a tile. Returns nothing if the row cannot be copied ahead.
static std::optional<Member> rowMember(tile::LoadOp load) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  if (!type || type.getRank() != 1 || !isZero(load.getFill()) || load.getView().getType().getIsMut())
    return std::nullopt;
  int64_t extent = type.getDimSize(0), bytes = elementBytes(type.getElementType());
  std::optional<TensorView> place = rowPlace(load);
  if (!place || !llvm::isPowerOf2_64(extent) || extent * bytes < kFewestBytes || extent * bytes > kMostBytes)
    return std::nullopt;
  layout::SharedLayout::Fields fields;
  fields.elementBytes = bytes;
  fields.bases.emplace_back();
  for (int64_t at = bytes; at < extent * bytes; at *= 2)
    fields.bases.front().push_back(at);
  fields.repeats = {1};
  fields.strides = {0};
  StreamedOperand operand{load, *place};
  return Member{operand, SharedType::get(type.getShape(), type.getElementType(),
                                         cantFail(layout::SharedLayout::get(std::move(fields))))};
}

Operation *Stream::first() const {
  Operation *first = dots.front();
  for (const Member &member : members)
    if (member.isRow() && member.operand.load->isBeforeInBlock(anchorOf(first)))
      first = member.operand.load;
  return first;
}

SmallVector<Operation *> addressOf(const Member &member, Block &block) {
  const TensorView &place = member.operand.place;
  SmallVector<Value> values(place.offsets);
  llvm::append_range(values, place.taps);
  if (place.slice)
    llvm::append_range(values, place.slice->getOperands().drop_front());
  SmallVector<Operation *> ops = sliceIn(block, values).takeVector();
  llvm::sort(ops, [](Operation *one, Operation *other) { return one->isBeforeInBlock(other); });
  return ops;
}

/// Returns whether the tile's place can be computed anywhere in the block.
static bool isAddressPure(const Member &member, Block &block) {
  return llvm::all_of(addressOf(member, block),
                      [](Operation *op) { return op->getNumRegions() == 0 && isMemoryEffectFree(op); });
}

/// Returns whether the load leads to the left operand of the stream's first product: a weight in another format, or its
/// scales. The operand may not depend on another product, whose stream would be awaited before.
static bool leadsToOperand(tile::LoadOp load, Stream &stream) {
  tile::DotOp dot = stream.dots.front();
  if (dot->getBlock() != load->getBlock() || isa_and_nonnull<tile::LoadOp>(dot.getLhs().getDefiningOp()))
    return false;
  SetVector<Operation *> ops = sliceIn(*load->getBlock(), dot.getLhs());
  return ops.contains(load) && llvm::none_of(ops, llvm::IsaPred<tile::DotOp>) &&
         llvm::all_of(stream.members, [&](const Member &member) { return isAddressPure(member, *load->getBlock()); });
}

/// Returns the stream of the load's block that can be awaited before the load and is released after the load's users.
/// Returns null if there is none.
static Stream *streamAround(tile::LoadOp load, std::vector<Stream> &streams) {
  for (Stream &stream : streams) {
    if (stream.members.front().operand.load->getBlock() != load->getBlock() ||
        (!stream.begin()->isBeforeInBlock(load) && !leadsToOperand(load, stream)))
      continue;
    bool isBehind = llvm::all_of(load->getUsers(), [&](Operation *user) {
      Operation *here = load->getBlock()->findAncestorOpInBlock(*user);
      return here && here->isBeforeInBlock(stream.end());
    });
    if (isBehind)
      return &stream;
  }
  return nullptr;
}

std::vector<Stream> streamsOf(tile::KernelOp kernel, MutableArrayRef<StreamedDot> products) {
  std::vector<Stream> streams;
  struct Read {
    tile::DotOp dot;
    StreamedOperand *operand;
    Value tile;
  };
  llvm::MapVector<Operation *, SmallVector<Read, 2>> reads; // keyed by load
  for (StreamedDot &product : products)
    for (auto [operand, tile] :
         {std::pair(&product.lhs, product.dot.getLhs()), std::pair(&product.rhs, product.dot.getRhs())})
      if (*operand)
        reads[(*operand)->load].push_back({product.dot, &**operand, tile});
  for (auto &[load, readers] : reads) {
    const Read &first = readers.front();
    Stream *last = streams.empty() ? nullptr : &streams.back();
    bool joins = last && readers.size() == 1 && last->dots.size() == 1 && last->dots.front() == first.dot &&
                 last->members.front().operand.load->getBlock() == load->getBlock();
    if (!joins) {
      last = &streams.emplace_back();
      for (const Read &read : readers)
        last->dots.push_back(read.dot);
    }
    last->members.push_back(memberFor(*first.operand, first.tile));
  }
  SmallVector<tile::LoadOp> loads;
  kernel.walk([&](tile::LoadOp load) {
    if (isa<scf::ForOp>(load->getParentOp()))
      loads.push_back(load);
  });
  for (tile::LoadOp load : loads)
    if (std::optional<Member> row = rowMember(load))
      if (Stream *stream = streamAround(load, streams);
          stream && (stream->begin()->isBeforeInBlock(load) || isAddressPure(*row, *load->getBlock())))
        stream->members.push_back(*row);
  return streams;
}

} // namespace kpkg::kgpu
