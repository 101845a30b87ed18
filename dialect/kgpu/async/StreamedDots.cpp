// Finds matrix products whose operands the TMA can copy to shared memory ahead, while earlier products run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/async/StreamedDots.h"
#include "dialect/kgpu/async/WgmmaLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::kgpu {
std::optional<TensorView> streamedPlace(Operation *op) {
  auto isReadable = [](tile::ViewType view, Value fill) { return !view.getIsMut() && (!fill || isZero(fill)); };
  return TypeSwitch<Operation *, std::optional<TensorView>>(op)
      .Case([&](tile::LoadOp load) {
        auto type = dyn_cast<RankedTensorType>(load.getType());
        return type && isReadable(load.getView().getType(), load.getFill())
                   ? tensorView(load.getView(), load.getOffsets(), type.getShape())
                   : std::nullopt;
      })
      .Case([&](tile::GatherOp gather) {
        return isReadable(gather.getView().getType(), gather.getFill()) ? tensorView(gather) : std::nullopt;
      })
      .Case(
          [&](Im2colLoadOp load) { return isReadable(load.getView().getType(), {}) ? tensorView(load) : std::nullopt; })
      .Default([](Operation *) { return std::nullopt; });
}

namespace {
constexpr int64_t kPanelBytes = 128;
constexpr int64_t kStepBytes = 16;         ///< granularity of operands along columns; along K it is twice as much
constexpr int64_t kMostAccumulators = 128; ///< registers of a thread for one accumulator
constexpr int64_t kMostColumns = 256;      ///< of a product of one warpgroup
constexpr int64_t kMostRepeated =
    64; ///< columns of a product that two warpgroups both compute; with more, repeating it costs more than it saves
/// Rows of a tile for three warpgroups, 64 for each.
constexpr int64_t kRowsOfThree = 192;

std::optional<StreamedOperand> streamed(Value value) {
  StreamedOperand operand;
  auto permute = value.getDefiningOp<tile::PermuteOp>();
  if (permute)
    value = permute.getValue();
  operand.load = value.getDefiningOp();
  std::optional<TensorView> place = operand.load ? streamedPlace(operand.load) : std::nullopt;
  if (!place)
    return std::nullopt;
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() != 2)
    return std::nullopt;
  operand.place = *place;
  operand.isTransposed = bool(permute);
  // A permutation of two dimensions that changes nothing has been folded.
  operand.panelDim = permute ? 1 - place->unitOfTile : place->unitOfTile;
  // Rows may end within a panel: copied elements beyond them are not read.
  int64_t rowBytes = type.getDimSize(place->unitOfTile) * elementBytes(type.getElementType());
  if (rowBytes < kPanelBytes || rowBytes % kStepBytes != 0 ||
      !panelsOf(type.getShape(), place->unitOfTile, elementBytes(type.getElementType())))
    return std::nullopt;
  return operand;
}

/// Returns the computed tile of which `value` is the transpose, or null if it cannot be shared by warpgroups.
Value turnedTile(Value value) {
  auto permute = value.getDefiningOp<tile::PermuteOp>();
  Operation *source = permute ? permute.getValue().getDefiningOp() : nullptr;
  if (!source || source->getBlock() != permute->getBlock() || isa<tile::LoadOp, tile::GatherOp>(source))
    return {};
  auto type = cast<RankedTensorType>(permute.getValue().getType());
  bool suits = type.getRank() == 2 && elementBytes(type.getElementType()) == 2 &&
               type.getDimSize(1) * 2 % kPanelBytes == 0 && type.getDimSize(0) % 64 == 0;
  return suits ? permute.getValue() : Value();
}

bool suitsWarpgroups(const StreamedDot &streams) {
  tile::DotOp dot = streams.dot;
  auto sum = cast<RankedTensorType>(dot.getType()), lhs = cast<RankedTensorType>(dot.getLhs().getType());
  Type element = lhs.getElementType();
  if (sum.getRank() != 2 || !isWgmmaElement(element, sum.getElementType()))
    return false;
  if (element.isF32() && dot.getPrecision() != tile::DotPrecision::TF32)
    return false;
  bool hasLeft =
      streams.lhs ? streams.lhs->panelDim == 1 || streams.goesThroughRegisters() : isa<Float8E4M3FNType>(element);
  if (elementBytes(element) != 2 && (!hasLeft || streams.rhs->panelDim != 0))
    return false;
  int64_t rows = sum.getDimSize(0), columns = sum.getDimSize(1), depth = lhs.getDimSize(1);
  // Each thread has positions for two steps of 32 along K, and a word for each pair of steps.
  if (dot.getPositions() && (!streams.lhs || streams.lhs->panelDim != 1 || elementBytes(element) != 2 ||
                             depth % 32 != 0 || !llvm::isPowerOf2_64(depth)))
    return false;
  int64_t columnStep = element.isInteger(8) && columns > 32 ? 16 : 8; // PTX ISA, shapes of wgmma
  bool areFew = columns <= kMostColumns || (columns <= 2 * kMostColumns && sharesPanels(sum.getShape(), 2));
  // A layout for loads of three warpgroups would have a fourth one, which does not exist.
  bool suitsRows =
      rows % 64 == 0 && (llvm::isPowerOf2_64(rows) || (rows == kRowsOfThree && !streams.goesThroughRegisters()));
  return suitsRows && columns % columnStep == 0 && areFew && depth * elementBytes(element) % 32 == 0;
}

/// Returns whether two warpgroups can each compute half of the columns of a product of 64 rows. A product with few
/// columns can also be computed by both.
bool suitsHalves(const StreamedDot &streams) {
  ArrayRef<int64_t> sum = cast<RankedTensorType>(streams.dot->getResult(0).getType()).getShape();
  // An operand with columns in panels cannot be read from the middle of a panel.
  bool isHalved =
      sum[1] <= 2 * kMostColumns && (streams.rhs->panelDim == 0 ? sharesColumns(sum, 2) : sharesPanels(sum, 2));
  return sum[0] == 64 && !streams.shared && (isHalved || (sum[1] <= kMostRepeated && !sharesColumns(sum, 2)));
}

/// Returns whether `part` is the first columns of `whole`.
bool liesWithin(const StreamedOperand &part, const StreamedOperand &whole) {
  const TensorView &inner = part.place, &outer = whole.place;
  auto isSame = [](Value one, Value other) {
    APInt left, right;
    return one == other ||
           (matchPattern(one, m_ConstantInt(&left)) && matchPattern(other, m_ConstantInt(&right)) && left == right);
  };
  if (part.load == whole.load || part.load->getBlock() != whole.load->getBlock() || inner.argument != outer.argument ||
      inner.window || outer.window || inner.slice != outer.slice || inner.unitOfTile != outer.unitOfTile ||
      inner.box.size() != outer.box.size())
    return false;
  for (size_t dim = 0; dim < inner.box.size(); ++dim) {
    bool fits = dim == inner.unit ? inner.box[dim] <= outer.box[dim] : inner.box[dim] == outer.box[dim];
    if (!fits || !isSame(inner.offsets[dim], outer.offsets[dim]))
      return false;
  }
  return true;
}

/// Returns whether the operand's load stands in the product's block or one around it, so that it runs whenever the
/// product does.
bool isAround(const StreamedOperand &operand, tile::DotOp dot) {
  return operand.load->getBlock()->findAncestorOpInBlock(*dot) != nullptr;
}

/// Returns whether only loops surround the op.
bool isOnlyInLoops(Operation *op, tile::KernelOp kernel) {
  for (Operation *parent = op->getParentOp(); parent != kernel; parent = parent->getParentOp())
    if (!isa<scf::ForOp, tile::ForTilesOp>(parent))
      return false;
  return true;
}
} // namespace

bool StreamedDot::goesThroughRegisters() const {
  return lhs && lhs->panelDim == 0 &&
         cast<RankedTensorType>(tile::DotOp(dot).getLhs().getType()).getElementType().isF32();
}

bool isZero(Value value) { return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()); }

std::vector<StreamedDot> streamedDots(tile::KernelOp kernel, const TargetModel &target) {
  std::vector<StreamedDot> dots;
  if (!target.hasWgmma)
    return dots;
  WalkResult all = kernel.walk([&](Operation *op) {
    if (isa<tile::AssertOp, tile::PrintOp, scf::WhileOp>(op))
      return WalkResult::interrupt();
    auto dot = dyn_cast<tile::DotOp>(op);
    if (!dot)
      return WalkResult::advance();
    std::optional<StreamedOperand> lhs = streamed(dot.getLhs()), rhs = streamed(dot.getRhs());
    if (!rhs || !isOnlyInLoops(dot, kernel) || !isAround(*rhs, dot) || (lhs && !isAround(*lhs, dot)))
      return WalkResult::interrupt();
    StreamedDot streams{dot, lhs, rhs, lhs ? Value() : turnedTile(dot.getLhs())};
    if (!suitsWarpgroups(streams))
      return WalkResult::interrupt();
    dots.push_back(streams);
    return WalkResult::advance();
  });
  if (all.wasInterrupted())
    dots.clear();
  return dots;
}

const StreamedOperand *wholeOf(const StreamedDot &product, ArrayRef<StreamedDot> products) {
  if (product.rhs->panelDim != 1)
    return nullptr;
  for (const StreamedDot &earlier : products) {
    if (&earlier == &product)
      break;
    for (const std::optional<StreamedOperand> *operand : {&earlier.lhs, &earlier.rhs})
      if (*operand && liesWithin(*product.rhs, **operand))
        return &**operand;
  }
  return nullptr;
}

/// Returns whether no op combines rows of different warpgroups. With three warpgroups, the layout of their
/// accumulators has a fourth one, to which no thread belongs.
static bool keepsRowsApart(tile::KernelOp kernel) {
  auto isAlongRow = [](Value tile, uint64_t axis) {
    return axis + 1 == uint64_t(cast<RankedTensorType>(tile.getType()).getRank());
  };
  auto crosses = [&](Operation *op) {
    return !llvm::TypeSwitch<Operation *, bool>(op)
                .Case([&](tile::ReduceOp reduce) { return isAlongRow(reduce.getValue(), reduce.getAxis()); })
                .Case([&](tile::ArgReduceOp reduce) { return isAlongRow(reduce.getValue(), reduce.getAxis()); })
                .Case(
                    [&](tile::CombineOp combine) { return isAlongRow(combine.getInputs().front(), combine.getAxis()); })
                .Case([](tile::ScanOp) { return false; })
                .Default(true);
  };
  return !kernel.walk([&](Operation *op) { return crosses(op) ? WalkResult::interrupt() : WalkResult::advance(); })
              .wasInterrupted();
}

bool readsComputed(const StreamedDot &dot) {
  Operation *source = tile::DotOp(dot.dot).getLhs().getDefiningOp();
  if (auto permute = dyn_cast_or_null<tile::PermuteOp>(source))
    source = permute.getValue().getDefiningOp();
  return !dot.lhs && !dot.shared && !isa_and_nonnull<tile::LoadOp, tile::GatherOp>(source);
}

bool canBeMade(ArrayRef<StreamedDot> dots) {
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  auto suits = [&](const StreamedDot &streams) {
    tile::DotOp dot = streams.dot;
    RankedTensorType sum = typeOf(dot.getResult()), lhs = typeOf(dot.getLhs());
    if (streams.shared || dot.getPositions() || sum.getDimSize(0) != 64 || streams.goesThroughRegisters())
      return false;
    // A published operand consists of whole panels.
    if (readsComputed(streams))
      return elementBytes(lhs.getElementType()) == 2 && lhs.getDimSize(1) * 2 % kPanelBytes == 0;
    return streams.lhs && sum.getNumElements() / kWarpgroupThreads <= kMostAccumulators;
  };
  return llvm::all_of(dots, suits) && llvm::any_of(dots, readsComputed) && !llvm::all_of(dots, readsComputed);
}

unsigned consumersFor(ArrayRef<StreamedDot> dots, bool together) {
  int64_t widest = 0, all = 0;
  for (const StreamedDot &streams : dots) {
    int64_t columns = cast<RankedTensorType>(streams.dot->getResult(0).getType()).getDimSize(1);
    widest = std::max(widest, columns);
    all += readsComputed(streams) ? columns : 0;
  }
  if (widest > kMostColumns || (together && all > kMostColumns && all <= 2 * kMostColumns))
    return llvm::all_of(dots, suitsHalves) ? 2 : 0;
  for (unsigned consumers : {2u, 3u, 1u, 4u}) {
    bool suits = llvm::all_of(dots, [&](const StreamedDot &streams) {
      if (consumers == 3 && (streams.shared || !keepsRowsApart(streams.dot->getParentOfType<tile::KernelOp>())))
        return false;
      auto sum = cast<RankedTensorType>(streams.dot->getResult(0).getType());
      if (streams.shared && cast<RankedTensorType>(streams.shared.getType()).getDimSize(0) % (64 * consumers) != 0)
        return false;
      if ((consumers == 3) != (sum.getDimSize(0) == kRowsOfThree))
        return false;
      bool hasRows =
          sum.getDimSize(0) % (64 * consumers) == 0 || (streams.shared && sharesPanels(sum.getShape(), consumers));
      return hasRows && sum.getNumElements() / (consumers * kWarpgroupThreads) <= kMostAccumulators;
    });
    if (suits && !dots.empty())
      return consumers;
  }
  return 0;
}

} // namespace kpkg::kgpu
