// Determines the tiles that the producer warp copies into ring buffers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/CopiedOperands.h"

using namespace mlir;

namespace kpkg::kgpu {

static constexpr int64_t kFewestBytes = 128,
                         kMostElements = 256; // of a row that pays for a copy, and that fits one box

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
  if (!place || !llvm::isPowerOf2_64(extent) || extent > kMostElements || extent * bytes < kFewestBytes)
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

/// Returns the stream of the load's block that is awaited before the load and released after the load's users. Returns
/// null if there is none.
static Stream *streamAround(tile::LoadOp load, std::vector<Stream> &streams) {
  for (Stream &stream : streams) {
    if (stream.members.front().operand.load->getBlock() != load->getBlock() || !stream.begin()->isBeforeInBlock(load))
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
      if (Stream *stream = streamAround(load, streams))
        stream->members.push_back(*row);
  return streams;
}

} // namespace kpkg::kgpu
