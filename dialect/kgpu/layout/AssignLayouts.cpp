// Assigns a layout to every tile: coalesced at memory accesses, and propagated from there along the data flow.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %v = tile.load %x[%r, %c0] ... -> tensor<1x1024xf32>
//         %s = tile.reduce sum %v axis 1 : tensor<1x1024xf32> -> tensor<1x1xf32>
// After:  %v = tile.load %x[%r, %c0] ... -> tensor<1x1024xf32, #row>
//         %s = tile.reduce sum %v axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
//
// Values that an op needs in one layout form a class: operands and results of elementwise ops, and values that loops
// and branches carry. A class with a load gets the coalesced layout of its shape. Reductions, broadcasts, reshapes and
// permutations propagate layouts to adjacent classes, such that the op moves nothing.
//
// A gather of rows gets a layout in which threads read whole vectors. So do the coordinates of a scatter that writes
// rows. A store of a transposed loaded tile gets its own coalesced layout. Remaining classes are coalesced too. Where
// the layouts of two classes differ, a kgpu.cvt_layout is inserted.
//
// On entry: a configured kernel without layouts.
// On exit: every tile has a layout, and the layouts suit every op.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/AccessWidths.h"
#include "dialect/kgpu/analysis/DotLayout.h"
#include "dialect/kgpu/analysis/HeldElements.h"
#include "dialect/kgpu/analysis/PartLayouts.h"
#include "dialect/kgpu/analysis/Slices.h"
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/kgpu/layout/FitLayouts.h"
#include "dialect/layout/Algebra.h"
#include "dialect/layout/Builders.h"
#include "dialect/layout/Subdivision.h"
#include "dialect/tile/transforms/RowGathers.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace kpkg::kgpu {

#define GEN_PASS_DEF_KGPUASSIGNLAYOUTS
#include "dialect/kgpu/Passes.h.inc"

namespace {

using layout::Layout;

bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }

/// Clones constants, positions and other cheap ops for each use, since each use may need another layout.
void cloneCheapProducers(tile::KernelOp kernel) {
  SetVector<Operation *> cheap; // after the ops that they depend on
  kernel.walk([&](Operation *op) {
    bool isSource = isa<arith::ConstantOp, tile::SplatOp, tile::IotaOp>(op) && isTile(op->getResult(0));
    bool isView = isa<arith::IndexCastOp, tile::ReshapeOp>(op) && cheap.contains(op->getOperand(0).getDefiningOp());
    if (isSource || isView)
      cheap.insert(op);
  });
  for (Operation *op : llvm::reverse(cheap))
    for (OpOperand &use : llvm::make_early_inc_range(op->getResult(0).getUses()))
      if (!op->hasOneUse()) {
        OpBuilder builder(op);
        use.set(builder.clone(*op)->getResult(0));
      }
}

/// Hoists coordinates of gathered rows that a loop does not change, so that they are converted before the loop. They
/// are few where vectors are read.
void hoistRows(tile::KernelOp kernel) {
  SmallVector<tile::GatherOp> gathers;
  kernel.walk([&](tile::GatherOp gather) {
    if (rowVectorBytes(gather) == kWholeVector)
      gathers.push_back(gather);
  });
  for (tile::GatherOp gather : gathers)
    for (auto loop = gather->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>()) {
      for (Operation *op : sliceIn(*loop.getBody(), gather.getIndices()))
        if (isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
            llvm::all_of(op->getOperands(), [&](Value operand) { return loop.isDefinedOutsideOfLoop(operand); }))
          op->moveBefore(loop);
    }
}

class Assigner {
public:
  /// `products` are those of wgmma.
  Assigner(tile::KernelOp kernel, ArrayRef<StreamedDot> products)
      : kernel(kernel), launch(getLaunch(kernel)), coalescing(measureAccesses(kernel)), products(products) {}

  LogicalResult run() {
    hoistRows(kernel);
    cloneCheapProducers(kernel);
    kernel.walk([&](Operation *op) { unite(op); });
    for (StreamedDot &product : products)
      if (launch.producers != 0 && !readsComputed(product))
        give(product.dot.getResult(), wgmmaMade(shapeOf(product.dot.getResult()), launch.consumers));
    kernel.walk([&](tile::DotOp dot) {
      if (!known(dot.getResult()))
        give(dot.getResult(), accumulator(dot.getResult(), dotKind(dot)));
    });
    for (StreamedDot &product : products)
      if (Value positions = product.dot.getPositions())
        give(positions, wgmmaPositions(shapeOf(positions), launch.consumers));
    for (StreamedDot &product : products)
      if (product.shared)
        give(product.shared, accumulator(product.shared, DotKind::Wgmma));
      else if (!product.lhs)
        give(product.dot.getLhs(), wgmmaLeftOperand(product.dot.getLhs(), launch.consumers));
    spread();
    kernel.walk([&](tile::GatherOp gather) {
      if (unsigned vectorBytes = rowVectorBytes(gather)) {
        layout::Threads all{launch.lanes(), launch.warps(), launch.ctas()};
        unsigned bytes = gather.getView().getType().getElementBytes();
        vectorBytes = vectorForAllThreads(vectorBytes, bytes, shapeOf(gather.getResult()), launch);
        give(gather.getResult(), layout::coalesced(shapeOf(gather.getResult()), bytes, all, vectorBytes));
      }
    });
    // A tile that is loaded along one dimension and stored along another one is converted in between.
    kernel.walk([&](tile::StoreOp store) {
      if (isTile(store.getValue()) && isTransposed(store.getValue()))
        giveCoalesced(store.getValue());
    });
    giveDivided();
    kernel.walk([&](tile::LoadOp load) { giveCoalesced(load.getResult()); });
    spread();
    kernel.walk([&](tile::ScatterOp scatter) { giveRows(scatter); });
    spread();
    // Classes that no load reaches: stores first, then the rest in program order.
    kernel.walk([&](tile::StoreOp store) {
      if (giveCoalesced(store.getValue()))
        spread();
    });
    for (Value value : values)
      if (giveCoalesced(value))
        spread();
    for (Value value : values)
      if (failed(checkHeld(value, *known(value))))
        return failure();
    for (Value value : values) {
      value.setType(withLayout(value.getType(), *known(value)));
      if (auto constant = value.getDefiningOp<arith::ConstantOp>())
        constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).reshape(cast<ShapedType>(value.getType())));
    }
    return fitLayouts(kernel, products, launch.consumers);
  }

private:
  // Classes

  void note(Value value) {
    if (!isTile(value) || classes.contains(value))
      return;
    classes.insert(value);
    values.push_back(value);
  }
  void join(Value left, Value right) {
    if (isTile(left) && isTile(right)) {
      note(left);
      note(right);
      classes.unionSets(left, right);
    }
  }
  void joinAll(ValueRange left, ValueRange right) {
    for (auto [one, other] : llvm::zip(left, right))
      join(one, other);
  }

  void unite(Operation *op) {
    for (Value result : op->getResults())
      note(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          note(argument);
    if (op->hasTrait<OpTrait::Elementwise>()) {
      for (Value operand : op->getOperands())
        join(operand, op->getResult(0));
      return;
    }
    TypeSwitch<Operation *>(op)
        .Case([&](scf::ForOp loop) {
          joinAll(loop.getInitArgs(), loop.getResults());
          joinAll(loop.getRegionIterArgs(), loop.getResults());
          joinAll(loop.getYieldedValues(), loop.getResults());
        })
        .Case([&](scf::IfOp branch) {
          for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()})
            if (!region->empty())
              joinAll(region->front().getTerminator()->getOperands(), branch.getResults());
        })
        .Case([&](scf::WhileOp loop) {
          joinAll(loop.getInits(), loop.getBeforeArguments());
          joinAll(loop.getYieldedValues(), loop.getBeforeArguments());
          joinAll(loop.getConditionOp().getArgs(), loop.getResults());
          joinAll(loop.getAfterArguments(), loop.getResults());
        })
        .Case([&](tile::CombineOp combine) {
          for (Value input : combine.getInputs())
            join(input, combine.getInputs().front());
          for (Value output : combine.getOutputs())
            join(output, combine.getOutputs().front());
        })
        .Case([&](tile::ScanOp scan) {
          for (Value value :
               llvm::concat<Value>(SmallVector<Value>(scan.getInputs()), SmallVector<Value>(scan.getOutputs())))
            join(value, scan.getInputs().front());
        })
        .Case([&](tile::JoinOp joined) {
          for (Value part : joined.getParts())
            if (part.getType() == joined.getParts().front().getType())
              join(part, joined.getParts().front());
        })
        .Case([&](tile::DotOp dot) { join(dot.getAccumulator(), dot.getResult()); })
        .Case([&](tile::GatherOp gather) {
          for (Value operand : gather->getOperands())
            join(operand, gather.getResult());
        })
        .Case([&](tile::ScatterOp scatter) {
          // Coordinates of rows follow the vectors that are written.
          bool hasRows = tile::neighboursOf(scatter) > 1;
          for (Value operand : scatter->getOperands())
            if (!hasRows || operand != scatter.getValue())
              join(operand, hasRows ? scatter.getIndices().front() : scatter.getValue());
        })
        .Case([&](tile::AtomicOp atomic) {
          for (Value operand : atomic->getOperands())
            join(operand, atomic.getValue());
          if (atomic.getOld())
            join(atomic.getOld(), atomic.getValue());
        });
  }

  /// Returns whether a value of the class is a transposed tile, perhaps reshaped: one whose last dimension was not the
  /// last before a permutation.
  bool isTransposed(Value value) const {
    return llvm::any_of(values, [&](Value other) {
      if (classes.getLeaderValue(other) != classes.getLeaderValue(value))
        return false;
      while (auto reshape = other.getDefiningOp<tile::ReshapeOp>())
        other = reshape.getValue();
      auto permute = other.getDefiningOp<tile::PermuteOp>();
      return permute && permute.getPermutation().back() != int64_t(permute.getPermutation().size()) - 1;
    });
  }

  std::optional<Layout> known(Value value) const {
    auto found = layouts.find(classes.getLeaderValue(value));
    return found == layouts.end() ? std::nullopt : std::optional<Layout>(found->second);
  }
  /// Assigns a layout to a class that has none; the first layout stays.
  bool give(Value value, const Layout &layout) {
    if (known(value) || !layout.covers(shapeOf(value)))
      return false;
    layouts.try_emplace(classes.getLeaderValue(value), layout);
    return true;
  }
  bool give(Value value, llvm::Expected<Layout> layout) {
    std::optional<Layout> found = llvm::expectedToOptional(std::move(layout));
    return found && give(value, *found);
  }

  /// Assigns the coalesced layout to the class of a tile, if it has none.
  bool giveCoalesced(Value value) {
    return isTile(value) && !known(value) &&
           give(value, layout::coalesced(shapeOf(value), coalescing.elementBytes, threads, coalescing.vectorBytes));
  }

  /// Assigns layouts to loaded tiles that are taken apart, and to their parts, before the tiles that parts meet. So
  /// threads keep their elements.
  void giveDivided() {
    llvm::SmallDenseSet<Value> divided;
    kernel.walk([&](tile::ExtractOp extract) { divided.insert(classes.getLeaderValue(extract.getValue())); });
    if (divided.empty())
      return;
    kernel.walk([&](tile::LoadOp load) {
      if (isTile(load.getResult()) && divided.contains(classes.getLeaderValue(load.getResult())))
        giveCoalesced(load.getResult());
    });
    spread();
  }

  /// Assigns coordinates of scattered rows a layout in which threads write whole vectors, as close to the value's
  /// layout as possible.
  void giveRows(tile::ScatterOp scatter) {
    int64_t longest = tile::neighboursOf(scatter);
    if (longest == 1)
      return;
    Value value = scatter.getValue(), index = scatter.getIndices().front();
    std::optional<Layout> held = known(value);
    std::optional<Layout> wanted = held ? layout::withNeighbours(*held, 1, longest) : std::nullopt;
    if (!held) {
      give(value, layout::coalesced(shapeOf(value), scatter.getView().getType().getElementBytes(), threads,
                                    longest * scatter.getView().getType().getElementBytes()));
      held = known(value);
    }
    if (held)
      give(index, wanted ? *wanted : *held);
  }

  Layout accumulator(Value value, DotKind kind) const {
    switch (kind) {
    case DotKind::Wgmma:
      return wgmmaAccumulator(shapeOf(value), launch.consumers);
    case DotKind::MmaSync:
      return mmaSyncAccumulator(shapeOf(value), threads);
    case DotKind::Fma:
      return dotAccumulator(shapeOf(value), elementBytes(getElementTypeOrSelf(value.getType())), threads);
    }
    llvm_unreachable("a kind of products");
  }

  // Propagation along the data flow

  static SmallVector<unsigned> unsignedOf(ArrayRef<int64_t> dims) {
    return SmallVector<unsigned>(dims.begin(), dims.end());
  }

  bool spreadOver(Operation *op) {
    return TypeSwitch<Operation *, bool>(op)
        .Case<tile::ReduceOp, tile::ArgReduceOp>(
            [&](auto reduce) { return spreadReduction(reduce.getValue(), reduce.getResult(), reduce.getAxis()); })
        .Case([&](tile::CombineOp combine) {
          return spreadReduction(combine.getInputs().front(), combine.getOutputs().front(), combine.getAxis());
        })
        .Case([&](tile::BroadcastOp broadcast) {
          Value small = broadcast.getValue(), large = broadcast.getResult();
          auto layout = known(large);
          return layout && !known(small) && give(small, sliced(*layout, shapeOf(small), shapeOf(large)));
        })
        .Case([&](tile::ReshapeOp reshape) {
          Value from = reshape.getValue(), to = reshape.getResult();
          if (auto layout = known(from); layout && !known(to))
            return give(to, layout::reshape(*layout, shapeOf(from), shapeOf(to)));
          if (auto layout = known(to); layout && !known(from))
            return give(from, layout::reshape(*layout, shapeOf(to), shapeOf(from)));
          return false;
        })
        .Case([&](tile::PermuteOp permute) {
          Value from = permute.getValue(), to = permute.getResult();
          SmallVector<unsigned> permutation = unsignedOf(permute.getPermutation()), inverse(permutation.size());
          for (auto [i, dim] : llvm::enumerate(permutation))
            inverse[dim] = i;
          if (auto layout = known(from); layout && !known(to))
            return give(to, layout::permute(*layout, permutation));
          if (auto layout = known(to); layout && !known(from))
            return give(from, layout::permute(*layout, inverse));
          return false;
        })
        .Case([&](tile::UnpackOp unpack) { return spreadUnpack(unpack); })
        .Case([&](tile::ExtractOp extract) { return spreadExtract(extract); })
        .Case([&](tile::JoinOp joined) { return spreadJoin(joined); })
        .Default([](Operation *) { return false; });
  }

  bool spreadUnpack(tile::UnpackOp op) {
    Value words = op.getValue(), fields = op.getResult();
    std::optional<Layout> given = known(words), wanted = known(fields), found;
    if (given && !wanted)
      return give(fields, layout::subdivide(*given, given->rank() - 1, op.getFields()));
    return wanted && !given && (found = layout::coarsen(*wanted, wanted->rank() - 1, op.getFields())) &&
           give(words, *found);
  }

  bool spreadExtract(tile::ExtractOp op) {
    Value from = op.getValue(), to = op.getResult();
    std::optional<Layout> given = known(from), wanted = known(to), found;
    if (given && !wanted && (found = layout::extract(*given, rangesOf(op))))
      return give(to, *found);
    return wanted && !given && (found = enclosing(*wanted, rangesOf(op))) && give(from, *found);
  }

  bool spreadJoin(tile::JoinOp op) {
    if (auto wanted = known(op.getResult())) {
      std::optional<std::vector<Layout>> layouts = layoutsOfParts(op, *wanted);
      bool changed = false;
      if (layouts)
        for (auto [part, layout] : llvm::zip_equal(op.getParts(), *layouts))
          changed |= !known(part) && give(part, layout);
      return changed;
    }
    for (auto [part, ranges] : llvm::zip_equal(op.getParts(), rangesOf(op)))
      if (auto given = known(part))
        if (auto whole = enclosing(*given, ranges); whole && layoutsOfParts(op, *whole))
          return give(op.getResult(), *whole);
    return false;
  }

  bool spreadReduction(Value from, Value to, unsigned axis) {
    if (auto layout = known(from); layout && !known(to))
      return give(to, layout::slice(*layout, axis));
    if (auto layout = known(to); layout && !known(from))
      return give(from, layout::broadcast(*layout, axis, shapeOf(from)[axis]));
    return false;
  }

  void spread() {
    for (bool changed = true; changed;) {
      changed = false;
      kernel.walk([&](Operation *op) { changed |= spreadOver(op); });
    }
  }

  tile::KernelOp kernel;
  Launch launch;
  layout::Threads threads{launch.lanes(), launch.spreadWarps(), launch.ctas()};
  Coalescing coalescing;
  llvm::EquivalenceClasses<Value> classes;
  SmallVector<Value> values; ///< of all classes, in program order
  DenseMap<Value, Layout> layouts;
  std::vector<StreamedDot> products; ///< products of wgmma
};

struct AssignLayouts final : impl::KgpuAssignLayoutsBase<AssignLayouts> {
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    if (getLaunch(kernel).threads == 0) {
      kernel.emitError("is not configured: run kgpu-configure before");
      return signalPassFailure();
    }
    std::vector<StreamedDot> products;
    if (getLaunch(kernel).consumers != 0)
      products = getAnalysis<StreamedDots>().products;
    if (failed(Assigner(kernel, products).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace kpkg::kgpu
