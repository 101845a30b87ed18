// Estimates the cost of a kernel as a formula over the shapes of its arguments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A walk over the kernel carries the product of the trip counts of the loops around an op. A tile's dimension records
// the argument and the dimension that it was loaded from. So `ceildiv(dim, B)` iterations over B elements become
// exactly `dim` elements, and a tile that is wider than its row counts the row.
#include "dialect/tile/transforms/Cost.h"
#include "dialect/tile/ir/ElementBytes.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"
#include <limits>

using namespace mlir;

namespace kpkg::tile {

namespace {

/// The dimension of a view argument that a tile's dimension was loaded from.
struct Place {
  unsigned argument;
  unsigned dimension;
  bool operator==(const Place &) const = default;
};
using Places = SmallVector<std::optional<Place>>;

enum class Scope {
  Launch, ///< All computation and data movement.
  Tile,   ///< One output tile or block, including elements beyond the edges.
};

class Estimator {
public:
  Estimator(KernelOp kernel, Scope scope) : scope(scope) {
    for (BlockArgument argument : kernel.getBody().getArguments())
      if (auto type = dyn_cast<ViewType>(argument.getType())) {
        Places &places = viewPlaces[argument];
        for (unsigned i = 0; i < type.getRank(); ++i)
          places.push_back(Place{argument.getArgNumber(), i});
      }
    CostTerm once;
    if (!kernel.isPersistent() && scope == Scope::Launch)
      once.factors.push_back({CostFactor::Kind::Blocks});
    known = isOfThreads(kernel)
                ? fail(*kernel.getOperation(), "code at thread level, in which threads go different ways")
                : walk(kernel.getBody().front(), once);
  }

  std::optional<Cost> result() { return known ? std::optional(cost) : std::nullopt; }
  std::string whyUnknown() const { return reason; }
  std::optional<CostTerm> count(Value value) {
    CostTerm term;
    return multiplyByCount(term, value) ? std::optional(term) : std::nullopt;
  }
  std::optional<CostTerm> tiles(ForTilesOp loop) {
    CostTerm term;
    for (Value count : loop.getCounts())
      if (!multiplyByCount(term, count))
        return std::nullopt;
    return term;
  }

private:
  bool walk(Block &block, const CostTerm &trips) {
    for (Operation &op : block)
      if (!visit(op, trips))
        return false;
    return true;
  }

  bool visit(Operation &op, const CostTerm &trips) {
    if (auto loop = dyn_cast<ForTilesOp>(op)) {
      CostTerm inner = trips;
      for (Value count : loop.getCounts())
        if (scope == Scope::Launch && !multiplyByCount(inner, count))
          return fail(op, "a loop over a number of tiles which is no formula of shapes and of Int arguments");
      return walk(loop.getBody().front(), inner);
    }
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      CostTerm inner = trips;
      if (!multiplyByTrips(inner, loop))
        return fail(op, "a loop whose number of iterations is no formula of shapes and of Int arguments");
      for (auto [init, argument, result] : llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getResults()))
        tilePlaces[argument] = tilePlaces[result] = tilePlaces.lookup(init);
      return walk(*loop.getBody(), inner);
    }
    if (isa<scf::WhileOp>(op))
      return fail(op, "a loop that ends by a condition");
    if (auto scratch = dyn_cast<ScratchOp>(op)) {
      viewPlaces[scratch.getResult()].resize(scratch.getShape().size());
      return true;
    }
    if (accessesScratch(op))
      return true; // no traffic of memory
    if (auto drop = dyn_cast<DropOp>(op)) {
      Places places = viewPlaces.lookup(drop.getView());
      for (int64_t dim : llvm::reverse(drop.getDims()))
        places.erase(places.begin() + dim);
      viewPlaces[drop.getResult()] = places;
      return true;
    }
    if (auto slice = dyn_cast<SliceOp>(op)) {
      viewPlaces[slice.getResult()] = viewPlaces.lookup(slice.getView());
      return true;
    }
    if (auto load = dyn_cast<LoadOp>(op)) {
      tilePlaces[load.getResult()] = viewPlaces.lookup(load.getView());
      return addBytes(load.getResult(), trips);
    }
    if (auto gather = dyn_cast<GatherOp>(op))
      return addBytes(gather.getResult(), trips);
    if (auto store = dyn_cast<StoreOp>(op)) {
      Places places = viewPlaces.lookup(store.getView());
      if (auto type = dyn_cast<RankedTensorType>(store.getValue().getType()))
        add(cost.bytes, trips, type.getShape(), places, elementBytes(type.getElementType()));
      return true;
    }
    if (auto store = dyn_cast<AddStoreOp>(op)) { // Reads and writes.
      auto type = cast<RankedTensorType>(store.getValue().getType());
      add(cost.bytes, trips, type.getShape(), viewPlaces.lookup(store.getView()),
          2 * elementBytes(type.getElementType()));
      return true;
    }
    if (auto dot = dyn_cast<DotOp>(op))
      return addDot(dot, trips);
    for (Region &region : op.getRegions())
      for (Block &block : region)
        if (!isa<CombineOp, ScanOp>(op) && !walk(block, trips))
          return false;
    propagate(op);
    countElementwise(op, trips);
    return true;
  }

  static bool accessesScratch(Operation &op) {
    auto isOfBlock = [](Value view) { return !isa<BlockArgument>(argumentOf(view)); };
    return TypeSwitch<Operation *, bool>(&op)
        .Case<LoadOp, GatherOp, StoreOp, AddStoreOp>([&](auto access) { return isOfBlock(access.getView()); })
        .Default(false);
  }

  bool fail(Operation &op, StringRef what) {
    llvm::raw_string_ostream stream(reason);
    if (auto place = op.getLoc()->findInstanceOf<FileLineColLoc>())
      stream << place.getFilename().getValue() << ':' << place.getLine() << ':' << place.getColumn() << ": ";
    stream << what;
    return false;
  }

  /// Multiplies `term` by the value of `count`: a constant, an extent, or either of them divided rounding up.
  bool multiply(CostTerm &term, Value count) {
    if (std::optional<int64_t> value = getConstantIntValue(count)) {
      term.count *= double(std::max<int64_t>(*value, 0));
      return true;
    }
    if (std::optional<Place> place = placeOfDim(count)) {
      term.factors.push_back({CostFactor::Kind::Extent, place->argument, place->dimension});
      return true;
    }
    // Consecutive divisions that round up equal one division by the product of the divisors.
    SmallVector<Value> divisors;
    Value dividend = dividendOf(count, divisors);
    int64_t size = 1;
    for (Value divisor : divisors) {
      if (std::optional<Place> parts = placeOfDim(divisor)) {
        term.factors.push_back({CostFactor::Kind::Share, parts->argument, parts->dimension});
        continue;
      }
      std::optional<int64_t> factor = getConstantIntValue(divisor);
      if (!factor || *factor <= 0 || size > std::numeric_limits<int32_t>::max() / *factor)
        return false;
      size *= *factor;
    }
    if (size == 1)
      return !divisors.empty() && multiply(term, dividend);
    std::optional<Place> place = placeOfDim(dividend);
    if (!place)
      return false;
    term.factors.push_back({CostFactor::Kind::Tiles, place->argument, place->dimension, size});
    return true;
  }

  std::optional<std::pair<unsigned, unsigned>> extentOf(Value value) {
    std::optional<Place> place = placeOfDim(value);
    return place ? std::optional(std::pair(place->argument, place->dimension)) : std::nullopt;
  }

  /// Multiplies `term` by the tiles along one coordinate of a loop over tiles.
  bool multiplyByCount(CostTerm &term, Value count) {
    CostTerm multiplied = term;
    if (multiply(multiplied, count)) {
      term = std::move(multiplied);
      return true;
    }
    return multiplyBySteps(term, formulaOf(count, [this](Value value) { return extentOf(value); }));
  }

  static bool multiplyBySteps(CostTerm &term, std::optional<TripCount> steps) {
    if (!steps)
      return false;
    if (steps->size() == 1 && steps->front().kind == TripCountStep::Kind::Constant) {
      term.count *= double(std::max<int64_t>(steps->front().number, 0));
      return true;
    }
    CostFactor factor{CostFactor::Kind::Count};
    factor.steps = std::move(*steps);
    term.factors.push_back(std::move(factor));
    return true;
  }

  bool multiplyByTrips(CostTerm &term, scf::ForOp loop) {
    // A loop over a dimension becomes a factor of that dimension, so that its edge elements are counted exactly.
    bool isFromZero = isConstant(loop.getLowerBound(), 0), isByOne = isConstant(loop.getStep(), 1);
    CostTerm multiplied = term;
    if (isFromZero && isByOne && multiply(multiplied, loop.getUpperBound())) {
      term = std::move(multiplied);
      return true;
    }
    std::optional<Place> place = placeOfDim(loop.getUpperBound());
    if (std::optional<int64_t> step = getConstantIntValue(loop.getStep()); isFromZero && place && step) {
      term.factors.push_back({CostFactor::Kind::Tiles, place->argument, place->dimension, *step});
      return true;
    }
    return multiplyBySteps(term, countTrips(loop.getLowerBound(), loop.getUpperBound(), loop.getStep(),
                                            [this](Value value) { return extentOf(value); }));
  }

  /// Returns the dividend of `value`, which is divided one or more times, rounding up. Appends the divisors, the last
  /// one first. Matches ceildivsi, and the prelude's form -(-n // d). Two of the latter simplify to -(-n // d // e).
  static Value dividendOf(Value value, SmallVectorImpl<Value> &divisors) {
    if (auto division = value.getDefiningOp<arith::CeilDivSIOp>()) {
      divisors.push_back(division.getRhs());
      return dividendOf(division.getLhs(), divisors);
    }
    SmallVector<Value> found;
    Value inner = matchNegation(value);
    while (auto division = inner ? inner.getDefiningOp<arith::FloorDivSIOp>() : arith::FloorDivSIOp()) {
      found.push_back(division.getRhs());
      inner = division.getLhs();
    }
    Value dividend = found.empty() ? Value() : matchNegation(inner);
    if (!dividend)
      return value;
    divisors.append(found);
    return dividendOf(dividend, divisors);
  }
  static Value matchNegation(Value value) {
    auto subtraction = value.getDefiningOp<arith::SubIOp>();
    return subtraction && isConstant(subtraction.getLhs(), 0) ? subtraction.getRhs() : Value();
  }

  std::optional<Place> placeOfDim(Value value) {
    auto dim = value.getDefiningOp<DimOp>();
    if (!dim)
      return std::nullopt;
    auto places = viewPlaces.lookup(dim.getView());
    return size_t(dim.getDimension()) < places.size() ? places[dim.getDimension()] : std::nullopt;
  }

  /// Adds `each` per element of a tile of shape `shape`, for all iterations.
  void add(std::vector<CostTerm> &terms, const CostTerm &trips, ArrayRef<int64_t> shape, const Places &places,
           double each) {
    CostTerm term = trips;
    term.count *= each;
    for (auto [i, size] : llvm::enumerate(shape)) {
      std::optional<Place> place = i < places.size() ? places[i] : std::nullopt;
      if (size == 1)
        continue;
      if (!place || scope == Scope::Tile) {
        term.count *= double(size);
        continue;
      }
      // Iterating over all tiles of a dimension covers it once, whichever argument the count comes from.
      auto tiles = llvm::find_if(term.factors, [&](const CostFactor &factor) {
        return factor.kind == CostFactor::Kind::Tiles && factor.size == size &&
               (Place{factor.argument, factor.dimension} == *place || !usesPlace(term, *place));
      });
      if (tiles != term.factors.end())
        *tiles = {CostFactor::Kind::Extent, tiles->argument, tiles->dimension};
      else
        term.factors.push_back({CostFactor::Kind::Clipped, place->argument, place->dimension, size});
    }
    for (CostTerm &old : terms)
      if (old.factors == term.factors) {
        old.count += term.count;
        return;
      }
    terms.push_back(std::move(term));
  }

  static bool usesPlace(const CostTerm &term, Place place) {
    return llvm::any_of(term.factors, [&](const CostFactor &factor) {
      return factor.kind == CostFactor::Kind::Tiles && factor.argument == place.argument &&
             factor.dimension == place.dimension;
    });
  }

  bool addBytes(Value tile, const CostTerm &trips) {
    if (auto type = dyn_cast<RankedTensorType>(tile.getType()))
      add(cost.bytes, trips, type.getShape(), tilePlaces.lookup(tile), elementBytes(type.getElementType()));
    return true;
  }

  bool addDot(DotOp dot, const CostTerm &trips) {
    auto lhsType = cast<RankedTensorType>(dot.getLhs().getType());
    auto rhsType = cast<RankedTensorType>(dot.getRhs().getType());
    Places lhs = tilePlaces.lookup(dot.getLhs()), rhs = tilePlaces.lookup(dot.getRhs());
    lhs.resize(lhsType.getRank());
    rhs.resize(rhsType.getRank());
    SmallVector<int64_t> shape(lhsType.getShape());
    shape.push_back(rhsType.getShape().back());
    Places places = lhs;
    places.push_back(rhs.back());
    add(cost.flops, trips, shape, places, 2);
    Places result(lhs.begin(), lhs.end() - 1);
    result.push_back(rhs.back());
    tilePlaces[dot.getResult()] = result;
    return true;
  }

  /// Propagates the operand's dimensions to results of the same rank, where the extents agree.
  void propagate(Operation &op) {
    if (op.getNumResults() != 1)
      return;
    auto type = dyn_cast<RankedTensorType>(op.getResult(0).getType());
    if (!type || isa<ReshapeOp>(op))
      return;
    Places places(type.getRank());
    for (Value operand : op.getOperands()) {
      auto from = dyn_cast<RankedTensorType>(operand.getType());
      auto known = tilePlaces.find(operand);
      if (!from || known == tilePlaces.end() || from.getRank() != type.getRank() ||
          known->second.size() != size_t(type.getRank()))
        continue;
      for (int64_t i = 0; i < type.getRank(); ++i) {
        int64_t source = i;
        if (auto permute = dyn_cast<PermuteOp>(op))
          source = permute.getPermutation()[i];
        if (!places[i] && from.getDimSize(source) == type.getDimSize(i))
          places[i] = known->second[source];
      }
    }
    tilePlaces[op.getResult(0)] = places;
  }

  void countElementwise(Operation &op, const CostTerm &trips) {
    Value counted;
    if (auto reduce = dyn_cast<ReduceOp>(op))
      counted = reduce.getValue();
    else if (op.getNumResults() == 1 && op.hasTrait<OpTrait::Elementwise>() && !isa<arith::SelectOp>(op))
      counted = op.getResult(0);
    auto type = counted ? dyn_cast<RankedTensorType>(counted.getType()) : nullptr;
    if (!type || !isa<FloatType>(type.getElementType()) || isa<arith::ExtFOp, arith::TruncFOp>(op))
      return;
    Places places = tilePlaces.lookup(counted);
    places.resize(type.getRank());
    add(cost.flops, trips, type.getShape(), places, 1);
  }

  static bool isConstant(Value value, int64_t wanted) { return getConstantIntValue(value) == wanted; }
  static double elementBytes(Type type) { return double(tile::elementBytes(type)); }

  const Scope scope;
  Cost cost;
  bool known = false;
  std::string reason;
  llvm::DenseMap<Value, Places> viewPlaces, tilePlaces;
};

} // namespace

std::optional<Cost> estimateCost(KernelOp kernel) { return Estimator(kernel, Scope::Launch).result(); }
std::optional<std::vector<CostTerm>> estimateTileFlops(KernelOp kernel) {
  std::optional<Cost> cost = Estimator(kernel, Scope::Tile).result();
  return cost ? std::optional(cost->flops) : std::nullopt;
}

std::string whyNoEstimate(KernelOp kernel) { return Estimator(kernel, Scope::Tile).whyUnknown(); }

std::optional<CostFactor> countFactor(KernelOp kernel, Value count) {
  std::optional<CostTerm> term = Estimator(kernel, Scope::Launch).count(count);
  return term && term->count == 1 && term->factors.size() == 1 ? std::optional(term->factors.front()) : std::nullopt;
}

std::optional<CostTerm> countTiles(KernelOp kernel) {
  SmallVector<ForTilesOp> loops;
  kernel.getBody().walk([&](ForTilesOp loop) { loops.push_back(loop); });
  return loops.size() == 1 ? Estimator(kernel, Scope::Launch).tiles(loops.front()) : std::nullopt;
}

std::string toString(ArrayRef<CostTerm> terms) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      terms, stream,
      [&](const CostTerm &term) {
        stream << llvm::format("%g", term.count);
        for (const CostFactor &factor : term.factors) {
          switch (factor.kind) {
          case CostFactor::Kind::Blocks:
            stream << "*blocks";
            break;
          case CostFactor::Kind::Extent:
            stream << "*dim(" << factor.argument << ',' << factor.dimension << ')';
            break;
          case CostFactor::Kind::Tiles:
            stream << "*tiles(" << factor.argument << ',' << factor.dimension << ',' << factor.size << ')';
            break;
          case CostFactor::Kind::Count:
            stream << "*count(" << toString(factor.steps) << ')';
            break;
          case CostFactor::Kind::Share:
            stream << "/dim(" << factor.argument << ',' << factor.dimension << ')';
            break;
          case CostFactor::Kind::Clipped:
            stream << "*clip(" << factor.argument << ',' << factor.dimension << ',' << factor.size << ')';
            break;
          }
        }
      },
      " + ");
  return text;
}

} // namespace kpkg::tile
