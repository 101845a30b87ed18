// Chooses the widths of vectorised memory accesses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/AccessWidths.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/tile/transforms/IndexFacts.h"
#include "dialect/tile/transforms/RowGathers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace kpkg::kgpu {

namespace {
/// The assumed trip count of loops around an access.
constexpr int64_t kAssumedTrips = 8;
/// Copies to a ring pay only with vectors of at least this many bytes.
constexpr unsigned kLeastRingVector = 8;

/// Halves the vector where that reduces the padding of a row, or where several short rows have too few vectors for all
/// threads. With a ring the instruction count depends on the computation, not on the loads.
unsigned vectorWithoutWaste(unsigned vector, unsigned elementBytes, ArrayRef<int64_t> shape, const Launch &launch,
                            bool hasProducts) {
  bool isRow = llvm::all_of(shape.drop_back(), [](int64_t extent) { return extent == 1; });
  if (launch.stages == 0 || launch.persistent || vector <= kLeastRingVector)
    return vector;
  if (!isRow)
    return hasProducts ? vector : vectorForAllThreads(vector, elementBytes, shape, launch);
  auto padded = [&](unsigned bytes) {
    return llvm::alignTo(shape.back(),
                         uint64_t(bytes / elementBytes) * launch.lanes() * launch.spreadWarps() * launch.ctas());
  };
  return padded(vector / 2) < padded(vector) ? vector / 2 : vector;
}
} // namespace

unsigned vectorForAllThreads(unsigned vector, unsigned elementBytes, ArrayRef<int64_t> shape, const Launch &launch) {
  int64_t bytes = elementBytes;
  for (int64_t extent : shape)
    bytes *= extent;
  while (vector > 8 && bytes < int64_t(launch.lanes()) * launch.warps() * launch.ctas() * vector)
    vector /= 2;
  return vector;
}

Coalescing measureAccesses(tile::KernelOp kernel) {
  Coalescing best;
  int64_t most = -1;
  bool hasProducts = containsOp<tile::DotOp>(kernel);
  auto consider = [&](Operation *op, Value memory, Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile || !isa<BlockArgument>(tile::argumentOf(memory))) // shared memory needs no long vectors
      return;
    auto view = cast<tile::ViewType>(memory.getType());
    int64_t bytes = view.getElementBytes(), moved = tile.getNumElements() * bytes;
    for (Operation *loop = op->getParentOp(); loop != kernel; loop = loop->getParentOp())
      if (isa<LoopLikeOpInterface>(loop))
        moved *= kAssumedTrips;
    if (moved < most || (moved == most && bytes <= best.elementBytes))
      return;
    most = moved;
    tile::ViewFacts facts = view.getFacts();
    int64_t vector = std::min(facts.align, facts.divisible * bytes);
    bool alongLast = facts.unit == view.getRank() - 1;
    best.elementBytes = bytes;
    best.vectorBytes = alongLast ? std::clamp<int64_t>(vector, bytes, 16) : bytes;
    best.vectorBytes = vectorWithoutWaste(best.vectorBytes, bytes, tile.getShape(), getLaunch(kernel), hasProducts);
  };
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<tile::LoadOp>(op))
      consider(op, load.getView(), load.getResult().getType());
    if (auto store = dyn_cast<tile::StoreOp>(op))
      consider(op, store.getView(), store.getValue().getType());
  });
  return best;
}

int64_t mostTogether(tile::ViewType view) {
  tile::ViewFacts facts = view.getFacts();
  int64_t bytes = view.getElementBytes();
  return std::min({16 / bytes, facts.align / bytes, facts.divisible});
}

int64_t mostTogether(tile::ViewType view, ValueRange offsets) {
  return std::min(mostTogether(view), tile::divisorOf(offsets[view.getUnit()]));
}

bool keepsVectors(const layout::Layout &layout, const layout::SharedLayout &memory, unsigned dim,
                  unsigned vectorBytes) {
  auto access = llvm::expectedToOptional(layout::planAccess(layout, memory, vectorBytes));
  auto groups = layout.vectors(dim, vectorBytes / memory.elementBytes());
  return access && access->vectorBytes == vectorBytes &&
         llvm::all_of(access->vectors, [&](const layout::SharedAccess::Vector &vector) {
           return llvm::is_contained(groups, vector.registers);
         });
}

unsigned rowVectorBytes(tile::GatherOp gather) {
  std::optional<tile::RowGather> rows = tile::rowGather(gather);
  tile::ViewType view = gather.getView().getType();
  if (!rows || int64_t(rows->along) != view.getUnit())
    return 0;
  tile::ViewFacts facts = view.getFacts();
  int64_t bytes = view.getElementBytes(), longest = std::min(facts.align / bytes, facts.divisible);
  for (Value start : rows->start)
    longest = std::min(longest, tile::divisorOf(start));
  return longest < 2 ? 0 : std::min<int64_t>(longest * bytes, kWholeVector);
}

} // namespace kpkg::kgpu
