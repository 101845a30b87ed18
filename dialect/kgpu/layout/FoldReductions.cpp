// Folds a carried sum: elements that a thread sums after a loop are summed in each iteration, before they are carried.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %all = scf.for ... iter_args(%acc = zeros) {   // each thread holds four rows of its columns
//           scf.yield %acc + %v : tensor<4x4096xf32, #rows>
//         }
//         %s = tile.reduce sum %all axis 0
// After:  %all = scf.for ... iter_args(%acc = zeros) {
//           %r = tile.reshape %v -> tensor<4x1x4096xf32, ...>
//           %t = tile.reduce sum %r axis 0;  %u = tile.reshape %t -> tensor<1x4096xf32, #columns>
//           scf.yield %acc + %u : tensor<1x4096xf32, #columns>
//         }
//         %s = tile.reduce sum %all axis 0
//
// On entry: every tile has a layout.
// On exit: a matching carried sum has no registers along the summed axis; elements of different threads stay separate.
// A sum matches if it starts at zero, every iteration adds to it, and all uses after the loop sum it over one axis. If
// an FMA adds to the sum, its product becomes part of the addend.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/ir/Constants.h"
#include "dialect/kgpu/ir/ConvertLayout.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/kgpu/layout/CarriedSums.h"
#include "dialect/layout/Algebra.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUFOLDREDUCTIONS
#include "dialect/kgpu/Passes.h.inc"

namespace {
using layout::Layout;
using layout::Part;

/// A carried sum, and how it is folded.
struct CarriedSum {
  unsigned number; ///< the index of the loop's carried value
  Operation *step; ///< adds to the sum
  unsigned axis;
  int64_t folded; ///< how many elements along the axis become one
  Layout apart, sums,
      single;            ///< layouts: with a dimension of `folded` before the axis, of the sum over it, and without it
  RankedTensorType type; ///< the new type of the carried value
};

/// Returns the axis over which all users after the loop sum a carried value.
std::optional<unsigned> summedAxis(Value result) {
  std::optional<unsigned> axis;
  for (Operation *user : result.getUsers()) {
    auto reduce = dyn_cast<tile::ReduceOp>(user);
    if (!reduce || reduce.getKind() != tile::ReduceKind::Sum || (axis && *axis != reduce.getAxis()))
      return std::nullopt;
    axis = reduce.getAxis();
  }
  return axis;
}

ResultOrWhy<CarriedSum> find(scf::ForOp loop, unsigned number) {
  BlockArgument carried = loop.getRegionIterArg(number);
  auto type = dyn_cast<RankedTensorType>(carried.getType());
  std::optional<unsigned> axis = summedAxis(loop.getResult(number));
  if (!type || !axis)
    return Refusal{"no sum over one axis alone reads what the loop carries"};
  if (!isa<FloatType>(type.getElementType()))
    return Refusal{"its elements are no floats"};
  if (!isZero(loop.getInitArgs()[number]))
    return Refusal{"it does not begin at zero"};
  const Refusal notAdded{"an iteration does more with it than add to it"};
  if (!carried.hasOneUse())
    return notAdded;
  Operation *step = *carried.user_begin();
  bool adds = isa<arith::AddFOp>(step) || (isa<math::FmaOp>(step) && step->getOperand(2) == carried);
  if (!adds || step->getBlock() != loop.getBody() || !step->hasOneUse() ||
      loop.getYieldedValues()[number] != step->getResult(0))
    return notAdded;
  // Elements of different threads form a dimension of their own: registers along the axis lie above it.
  const Layout &layout = layoutOf(type);
  int64_t apart = 1;
  for (Part part : {Part::Lane, Part::Warp, Part::Block})
    apart <<= llvm::popcount(layout.bitsAlong(part, *axis));
  int64_t extent = type.getShape()[*axis];
  if (apart >= extent || extent % apart != 0)
    return Refusal{"no thread holds several elements along the axis"};
  SmallVector<int64_t> shape(type.getShape()), split(shape);
  split[*axis] = apart;
  shape[*axis] = apart;
  split.insert(split.begin() + *axis, extent / apart);
  llvm::Expected<Layout> splitLayout = layout::reshape(layout, type.getShape(), split);
  if (!splitLayout)
    return Refusal{llvm::toString(splitLayout.takeError())};
  for (Part part : {Part::Lane, Part::Warp, Part::Block})
    if (splitLayout->bitsAlong(part, *axis) != 0)
      return Refusal{"the elements of a thread are not apart from those of others along the axis"};
  Layout sums = llvm::cantFail(layout::slice(*splitLayout, *axis)), single = layout::removeDim(sums, *axis);
  return CarriedSum{
      number,       step, *axis,  extent / apart,
      *splitLayout, sums, single, withLayout(RankedTensorType::get(shape, type.getElementType()), single)};
}

/// Returns the addend of `step`, with one element for each group of folded elements.
Value foldedAddend(OpBuilder &builder, const CarriedSum &sum, Value carried) {
  Operation *step = sum.step;
  Location loc = step->getLoc();
  Value added = step->getOperand(0) == carried ? step->getOperands().back() : step->getOperand(0);
  if (isa<math::FmaOp>(step)) {
    auto product = arith::MulFOp::create(builder, loc, step->getOperand(0), step->getOperand(1));
    product.setFastmath(arith::FastMathFlags::contract);
    added = product;
  }
  SmallVector<int64_t> split(sum.type.getShape()), one(split);
  split.insert(split.begin() + sum.axis, sum.folded);
  one.insert(one.begin() + sum.axis, 1);
  Type element = sum.type.getElementType();
  Value apart =
      tile::ReshapeOp::create(builder, loc, withLayout(RankedTensorType::get(split, element), sum.apart), added);
  Value summed = tile::ReduceOp::create(builder, loc, withLayout(RankedTensorType::get(one, element), sum.sums),
                                        tile::ReduceKind::Sum, apart, sum.axis);
  return tile::ReshapeOp::create(builder, loc, sum.type, summed);
}

/// Changes the type of the carried sum everywhere.
void fold(scf::ForOp loop, const CarriedSum &sum) {
  BlockArgument carried = loop.getRegionIterArg(sum.number);
  OpBuilder builder(sum.step);
  Value addend = foldedAddend(builder, sum, carried);
  setCarriedType(loop, sum.number, sum.type);
  Value next = arith::AddFOp::create(builder, sum.step->getLoc(), carried, addend);
  sum.step->replaceAllUsesWith(ValueRange{next});
  sum.step->erase();
  for (Operation *user : llvm::to_vector(loop.getResult(sum.number).getUsers()))
    giveLayout(user->getResult(0), llvm::cantFail(layout::slice(sum.single, sum.axis)));
}

constexpr Optimisation kFold{"kgpu-fold-reductions", "carried sum with fewer elements"};

struct FoldReductions final : impl::KgpuFoldReductionsBase<FoldReductions> {
  void runOnOperation() override {
    getOperation().walk([](scf::ForOp loop) {
      for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number)
        if (ResultOrWhy<CarriedSum> sum = find(loop, number)) {
          remarkApplied(sum->step, kFold, "a thread sums " + llvm::Twine(sum->folded) + " elements in each iteration");
          fold(loop, *sum);
        } else if (summedAxis(loop.getResult(number))) {
          remarkRefused(loop, kFold, sum.why());
        }
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
