// Finds matrix products whose operands the TMA can copy to shared memory ahead, while earlier products run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/StreamedDots.h"
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/kgpu/ir/Walks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::kgpu {
static WhyNot whyNotReadable(tile::ViewType view, Value fill) {
  if (view.getIsMut())
    return "the kernel may write to the tensor";
  if (fill && !isZero(fill))
    return "elements outside of the tensor are filled with another value than 0";
  return std::nullopt;
}

ResultOrWhy<TensorView> streamedPlace(Operation *op) {
  using Place = ResultOrWhy<TensorView>;
  return TypeSwitch<Operation *, Place>(op)
      .Case([&](tile::LoadOp load) -> Place {
        auto type = dyn_cast<RankedTensorType>(load.getType());
        if (!type)
          return Refusal{"it is a single element"};
        if (WhyNot why = whyNotReadable(load.getView().getType(), load.getFill()))
          return Refusal{*why};
        return tensorView(load.getView(), load.getOffsets(), type.getShape());
      })
      .Case([&](tile::GatherOp gather) -> Place {
        if (WhyNot why = whyNotReadable(gather.getView().getType(), gather.getFill()))
          return Refusal{*why};
        return tensorView(gather);
      })
      .Case([&](Im2colLoadOp load) -> Place {
        if (WhyNot why = whyNotReadable(load.getView().getType(), {}))
          return Refusal{*why};
        return tensorView(load);
      })
      .Default([](Operation *) -> Place { return Refusal{"the kernel computes it"}; });
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

ResultOrWhy<StreamedOperand> streamed(Value value) {
  StreamedOperand operand;
  auto permute = value.getDefiningOp<tile::PermuteOp>();
  if (permute)
    value = permute.getValue();
  operand.load = value.getDefiningOp();
  if (!operand.load)
    return Refusal{"a loop carries it"};
  ResultOrWhy<TensorView> place = streamedPlace(operand.load);
  if (!place)
    return place.refusal();
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() != 2)
    return Refusal{"its rank is not 2"};
  operand.place = *place;
  operand.isTransposed = bool(permute);
  // A permutation of two dimensions that changes nothing has been folded.
  operand.panelDim = permute ? 1 - place->unitOfTile : place->unitOfTile;
  // Rows may end within a panel: copied elements beyond them are not read.
  int64_t rowBytes = type.getDimSize(place->unitOfTile) * elementBytes(type.getElementType());
  if (rowBytes < kPanelBytes || rowBytes % kStepBytes != 0)
    return Refusal{"its contiguous rows have " + std::to_string(rowBytes) +
                   " bytes, not at least 128 and a multiple of 16"};
  if (!panelsOf(type.getShape(), place->unitOfTile, elementBytes(type.getElementType())))
    return Refusal{"its extents do not fit the swizzled layout of shared memory"};
  return operand;
}

/// Returns the computed tile of which `value` is the transpose, or null if it cannot be shared by warpgroups.
Value transposedTile(Value value) {
  auto permute = value.getDefiningOp<tile::PermuteOp>();
  Operation *source = permute ? permute.getValue().getDefiningOp() : nullptr;
  if (!source || source->getBlock() != permute->getBlock() || isa<tile::LoadOp, tile::GatherOp>(source))
    return {};
  auto type = cast<RankedTensorType>(permute.getValue().getType());
  bool suits = type.getRank() == 2 && elementBytes(type.getElementType()) == 2 &&
               type.getDimSize(1) * 2 % kPanelBytes == 0 && type.getDimSize(0) % 64 == 0;
  return suits ? permute.getValue() : Value();
}

/// Returns why wgmma does not multiply elements of these types.
WhyNot whyNotTypes(tile::DotOp dot) {
  auto sum = cast<RankedTensorType>(dot.getType()), lhs = cast<RankedTensorType>(dot.getLhs().getType());
  Type element = lhs.getElementType();
  if (sum.getRank() != 2)
    return "the product has a batch dimension";
  if (!isWgmmaElement(element, sum.getElementType()))
    return "warpgroups do not multiply elements of " + dtypeName(element) + " into " + dtypeName(sum.getElementType());
  if (element.isF32() && dot.getPrecision() != tile::DotPrecision::TF32)
    return "the product needs all bits of float32, and tensor cores round its operands to tf32";
  return std::nullopt;
}

/// Returns why the operands are not contiguous along the dimensions that wgmma reads.
WhyNot whyNotContiguous(const StreamedDot &streams) {
  Type element = cast<RankedTensorType>(tile::DotOp(streams.dot).getLhs().getType()).getElementType();
  bool hasLeft =
      streams.lhs ? streams.lhs->panelDim == 1 || streams.goesThroughRegisters() : isa<Float8E4M3FNType>(element);
  if (elementBytes(element) == 2 || (hasLeft && streams.rhs->panelDim == 0))
    return std::nullopt;
  if (!hasLeft && !streams.lhs)
    return "the kernel computes the left operand, whose elements have no 16 bits";
  return "operands whose elements have no 16 bits must be contiguous along what is summed over, and the " +
         std::string(hasLeft ? "right" : "left") + " one is not";
}

/// Returns why wgmma cannot compute the product from shared memory.
WhyNot whyNotWarpgroups(const StreamedDot &streams) {
  tile::DotOp dot = streams.dot;
  auto sum = cast<RankedTensorType>(dot.getType()), lhs = cast<RankedTensorType>(dot.getLhs().getType());
  Type element = lhs.getElementType();
  if (WhyNot why = whyNotContiguous(streams))
    return why;
  int64_t rows = sum.getDimSize(0), columns = sum.getDimSize(1), depth = lhs.getDimSize(1);
  // Each thread has positions for two steps of 32 along K, and a word for each pair of steps.
  if (dot.getPositions() && (!streams.lhs || streams.lhs->panelDim != 1 || elementBytes(element) != 2 ||
                             depth % 32 != 0 || !llvm::isPowerOf2_64(depth)))
    return "the left operand with positions must be loaded, contiguous along what is summed over, of 16 bits, and have "
           "32, 64, 128, ... columns";
  int64_t columnStep = element.isInteger(8) && columns > 32 ? 16 : 8; // PTX ISA, shapes of wgmma
  bool areFew = columns <= kMostColumns || (columns <= 2 * kMostColumns && sharesPanels(sum.getShape(), 2));
  // A layout for loads of three warpgroups would have a fourth one, which does not exist.
  bool suitsRows =
      rows % 64 == 0 && (llvm::isPowerOf2_64(rows) || (rows == kRowsOfThree && !streams.goesThroughRegisters()));
  if (!suitsRows)
    return "the result has " + std::to_string(rows) + " rows, not 64, 128, 192, 256, ...";
  if (columns % columnStep != 0)
    return "the result has " + std::to_string(columns) + " columns, not a multiple of " + std::to_string(columnStep);
  if (!areFew)
    return "the result has " + std::to_string(columns) + " columns, more than warpgroups hold";
  if (depth * elementBytes(element) % 32 != 0)
    return "the " + std::to_string(depth) + " elements that a product sums have no multiple of 32 bytes";
  return std::nullopt;
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

/// Returns why warpgroups cannot run an op besides their products.
static WhyNot whyNotBeside(Operation *op) {
  if (isa<tile::AssertOp>(op))
    return "a kernel whose products are of warpgroups has no `assert`";
  if (isa<tile::PrintOp>(op))
    return "a kernel whose products are of warpgroups does not print";
  if (isa<tile::ExtractOp, tile::JoinOp>(op))
    return "a kernel whose products are of warpgroups takes no tiles apart and joins none";
  if (isa<tile::ScratchOp>(op))
    return "a kernel whose products are of warpgroups has no scratch memory";
  if (isa<scf::WhileOp>(op))
    return "a kernel whose products are of warpgroups has no `while`";
  // The producer warp would need a number whose tile only the consumers hold.
  if (isa<tile::ScalarOp>(op))
    return "a kernel whose products are of warpgroups reads no `scalar` of a tile";
  if (auto atomic = dyn_cast<tile::AtomicOp>(op); atomic && atomic.getOld())
    return "a kernel whose products are of warpgroups reads no old values of atomic updates";
  return std::nullopt;
}

/// Returns the product with its operands, if the TMA can copy them and wgmma can multiply them.
static ResultOrWhy<StreamedDot> streamedDot(tile::DotOp dot, tile::KernelOp kernel) {
  if (WhyNot why = whyNotTypes(dot))
    return Refusal{*why};
  ResultOrWhy<StreamedOperand> lhs = streamed(dot.getLhs()), rhs = streamed(dot.getRhs());
  if (!rhs)
    return Refusal{"the right operand cannot be copied ahead: " + rhs.why()};
  if (!isOnlyInLoops(dot, kernel))
    return Refusal{"the product stands in a branch"};
  if (!isAround(*rhs, dot) || (lhs && !isAround(*lhs, dot)))
    return Refusal{"an operand is loaded in another branch or loop than the product's"};
  StreamedDot streams{dot, lhs.toOptional(), *rhs, lhs ? Value() : transposedTile(dot.getLhs())};
  WhyNot why = whyNotWarpgroups(streams);
  if (!why)
    return streams;
  bool isLeftLoaded = !lhs && isa_and_nonnull<tile::LoadOp, tile::GatherOp>(dot.getLhs().getDefiningOp());
  return Refusal{isLeftLoaded ? "the left operand cannot be copied ahead: " + lhs.why() : *why};
}

std::vector<StreamedDot> streamedDots(tile::KernelOp kernel, const TargetModel &target, StreamRefusal *refusal) {
  std::vector<StreamedDot> dots;
  auto refuse = [&](Operation *op, const std::string &why) {
    if (refusal)
      *refusal = {op, why};
    return WalkResult::interrupt();
  };
  WalkResult all = kernel.walk([&](Operation *op) {
    auto dot = dyn_cast<tile::DotOp>(op);
    if (dot && !target.hasWgmma)
      return refuse(op, "the chip's warpgroups do not multiply");
    if (WhyNot why = whyNotBeside(op))
      return refuse(op, *why);
    if (!dot)
      return WalkResult::advance();
    ResultOrWhy<StreamedDot> streams = streamedDot(dot, kernel);
    if (!streams)
      return refuse(op, streams.why());
    dots.push_back(*streams);
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
                .Case<tile::ReduceOp, tile::ArgReduceOp>(
                    [&](auto reduce) { return isAlongRow(reduce.getValue(), reduce.getAxis()); })
                .Case(
                    [&](tile::CombineOp combine) { return isAlongRow(combine.getInputs().front(), combine.getAxis()); })
                .Case([](tile::ScanOp) { return false; })
                .Default(true);
  };
  return !containsOp(kernel, crosses);
}

bool readsComputed(const StreamedDot &dot) {
  Operation *source = tile::DotOp(dot.dot).getLhs().getDefiningOp();
  if (auto permute = dyn_cast_or_null<tile::PermuteOp>(source))
    source = permute.getValue().getDefiningOp();
  return !dot.lhs && !dot.shared && !isa_and_nonnull<tile::LoadOp, tile::GatherOp>(source);
}

bool suitsProducer(ArrayRef<StreamedDot> dots) {
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

static bool suitsConsumers(const StreamedDot &streams, unsigned consumers) {
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
}

constexpr unsigned kNumbersOfConsumers[] = {2, 3, 1, 4}; ///< the best first

StreamRefusal whyNoConsumers(ArrayRef<StreamedDot> dots) {
  auto extents = [](const StreamedDot &streams) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(streams.dot->getResult(0).getType()).getShape();
    return std::to_string(shape[0]) + " x " + std::to_string(shape[1]);
  };
  for (const StreamedDot &streams : dots) {
    if (cast<RankedTensorType>(streams.dot->getResult(0).getType()).getDimSize(1) > kMostColumns)
      return {streams.dot, "a result of " + extents(streams) +
                               " elements is divided by columns between two warpgroups, and so must have 64 rows"};
    if (llvm::none_of(kNumbersOfConsumers, [&](unsigned consumers) { return suitsConsumers(streams, consumers); }))
      return {streams.dot, "no one to four warpgroups can divide its result of " + extents(streams) +
                               " elements: each takes 64 rows at a time, and a thread at most 128 elements"};
  }
  std::string all;
  for (const StreamedDot &streams : dots)
    all += (all.empty() ? "" : ", ") + extents(streams);
  return {dots.front().dot, "no number of warpgroups can divide the results of all products: " + all + " elements"};
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
  for (unsigned consumers : kNumbersOfConsumers)
    if (!dots.empty() &&
        llvm::all_of(dots, [&](const StreamedDot &streams) { return suitsConsumers(streams, consumers); }))
      return consumers;
  return 0;
}

} // namespace kpkg::kgpu
