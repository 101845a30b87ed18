// Chooses the coordinate of an output along which the CTAs of a cluster take adjacent tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/ClusterTiles.h"
#include "dialect/kgpu/analysis/Dependents.h"
#include "dialect/kgpu/analysis/StorePanels.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/tile/transforms/Cost.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
constexpr int64_t kPanelBytes = 128;
/// Rows of 128 bytes after which the swizzle pattern repeats.
constexpr int64_t kSwizzledRows = 8;

/// Follows dimension `dim` of a view to the kernel argument that the view is a part of. The argument is null for other
/// views.
std::pair<BlockArgument, int64_t> sourceOf(Value view, int64_t dim) {
  while (auto drop = view.getDefiningOp<tile::DropOp>()) {
    for (int64_t dropped : drop.getDims()) // ascending
      dim += dropped <= dim;
    view = drop.getView();
  }
  return {dyn_cast<BlockArgument>(view), dim};
}

class Search {
public:
  Search(tile::ForTilesOp tiles, ArrayRef<StreamedDot> products, unsigned cluster)
      : tiles(tiles), products(products), cluster(cluster) {}

  std::optional<unsigned> run() {
    std::optional<unsigned> best;
    int64_t most = 0;
    unsigned consumers = consumersFor(products);
    if (consumers == 0 || containsOp<tile::ScatterOp, tile::AtomicOp>(tiles))
      return std::nullopt;
    auto becomesAtomic = [&](tile::AddStoreOp store) { return !isAddedByMap(store, consumers); };
    if (llvm::any_of(opsIn<tile::AddStoreOp>(tiles), becomesAtomic))
      return std::nullopt;
    for (unsigned number = 0; number < tiles.getCounts().size(); ++number) {
      DenseSet<Value> differing = dependents(tiles, {tiles.getCoordinates()[number]});
      int64_t bytes = goesInStep(differing) ? commonBytes(differing) : 0;
      if (bytes > most)
        best = number, most = bytes;
    }
    return best;
  }

private:
  bool goesInStep(const DenseSet<Value> &differing) {
    return llvm::none_of(opsIn<scf::ForOp>(tiles), [&](scf::ForOp loop) { return hasBoundIn(loop, differing); });
  }

  /// Returns the bytes of operands that are the same for all CTAs of a cluster.
  int64_t commonBytes(const DenseSet<Value> &differing) const {
    DenseSet<Operation *> seen;
    auto differs = [&](Value value) { return differing.contains(value); };
    int64_t bytes = 0;
    for (const StreamedDot &product : products)
      for (const std::optional<StreamedOperand> &operand : {product.lhs, product.rhs}) {
        if (!operand || !seen.insert(operand->load).second)
          continue;
        const TensorView &place = operand->place;
        unsigned width = elementBytes(cast<tile::ViewType>(place.argument.getType()).getElementType());
        auto reads = [&](Operation *op) { return llvm::any_of(op->getOperands(), differs); };
        if (!reads(operand->load) && !(place.slice && reads(place.slice)) && !place.window &&
            sharedBox(place.box, place.unit, width, cluster))
          bytes += llvm::product_of(place.box) * width;
      }
    return bytes;
  }

  tile::ForTilesOp tiles;
  ArrayRef<StreamedDot> products;
  unsigned cluster;
};
} // namespace

SmallVector<Operation *> storesOfNoTile(tile::ForTilesOp tiles, unsigned number) {
  std::optional<tile::CostFactor> count =
      tile::countFactor(tiles->getParentOfType<tile::KernelOp>(), tiles.getCounts()[number]);
  auto isOutside = [&](Value view, ValueRange offsets) {
    if (!count || count->kind != tile::CostFactor::Kind::Tiles)
      return false;
    for (auto [dim, offset] : llvm::enumerate(offsets)) {
      APInt step;
      auto product = offset.getDefiningOp<arith::MulIOp>();
      auto [argument, source] = sourceOf(view, dim);
      if (product && argument && product.getLhs() == tiles.getCoordinates()[number] &&
          matchPattern(product.getRhs(), m_ConstantInt(&step)) && argument.getArgNumber() == count->argument &&
          source == count->dimension && step.getSExtValue() >= count->size)
        return true;
    }
    return false;
  };
  SmallVector<Operation *> stores;
  tiles->walk([&](Operation *op) {
    auto store = dyn_cast<tile::StoreOp>(op);
    auto addStore = dyn_cast<tile::AddStoreOp>(op);
    if ((store && !isOutside(store.getView(), store.getOffsets())) ||
        (addStore && !isOutside(addStore.getView(), addStore.getOffsets())))
      stores.push_back(op);
  });
  return stores;
}

std::optional<SharedBox> sharedBox(ArrayRef<int64_t> box, unsigned unit, unsigned elementBytes, unsigned cluster) {
  // The parts must be contiguous in a panel, as rows are. So they divide the outermost dimension, in TMA order, that
  // has several rows.
  for (auto [dim, extent] : llvm::enumerate(box)) {
    if (extent == 1 || dim == unit)
      continue;
    if (extent % (cluster * kSwizzledRows) != 0 || box[unit] * elementBytes < kPanelBytes)
      return std::nullopt;
    SharedBox shared{unsigned(dim), SmallVector<int64_t>(box)};
    shared.part[dim] = extent / cluster;
    return shared;
  }
  return std::nullopt;
}

std::optional<unsigned> clusterCoordinate(tile::KernelOp kernel, ArrayRef<StreamedDot> products,
                                          const TargetModel &target, unsigned cluster) {
  SmallVector<tile::ForTilesOp> loops = opsIn<tile::ForTilesOp>(kernel);
  if (loops.size() != 1 || cluster < 2 || target.maxCluster < cluster || !target.hasWgmma)
    return std::nullopt;
  return Search(loops.front(), products, cluster).run();
}
} // namespace kpkg::kgpu
