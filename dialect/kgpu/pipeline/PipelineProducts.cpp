// Software-pipelines loops with two dependent products: the second overlaps with the arithmetic of the next iteration.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %j = %lo to %hi iter_args(%acc) {
//           %s = dot(%q, %k[%j]); ... %p, %x = f(%s), %acc * g(%s) ...; %acc' = dot(%p, %v[%j], %x) }
// After:  %s = dot(%q, %k[%lo]); %p, %x = f(%s), %acc * g(%s)
//         scf.for %j = %lo + 1 to %hi iter_args(%p, %x) {
//           %s = dot(%q, %k[%j]);  %acc = dot(%p, %v[%j - 1], %x);  %p', %x' = f(%s), %acc * g(%s) }
//         %acc' = dot(%p, %v[%hi - 1], %x)
//
// On entry: a kernel whose launch has `consumers` and layouts, without tile.for_tiles.
// On exit: loops of this form are software-pipelined. The loop issues the first product, and directly after it the
// second product of the previous iteration; f(%s) needs only the first.
//
// Source of the schedule: Shah et al., FlashAttention-3, 2024, section 3.2.
//
// If the original loop does not run, the peeled first part still does. It loads zeros from outside of the views, and
// its results are not used.
//
// Two kinds of loops are not pipelined:
//  * The second product's right operand is a part of a tile that the first product reads. The loop would hold two
//    slots.
//  * The second product has at most 128 columns and an 8-bit left operand. 8-bit products take half the time of 16-bit
//    ones, and the arithmetic of other warpgroups hides them. Probabilities that wait for the next iteration only
//    delay. Measured on an H200 with attention, heads of 128: 3 to 6 % of the time.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/Slices.h"
#include "dialect/kgpu/analysis/StreamedDots.h"
#include "dialect/kgpu/ir/RemarkText.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/kgpu/ir/Repeatable.h"
#include "dialect/kgpu/ir/Walks.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPIPELINEPRODUCTS
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// Returns whether the op may run one iteration earlier. Pure ops may, and loads, which give their fill value outside
/// of a view. So may ops whose regions hold only such ops. Gathers may not: elements in flight need the registers that
/// a pipelined loop takes. Measured on an H200 with attention whose scores are gathered: 13 % of the time.
bool runsAnywhere(Operation *op) {
  if (isRepeatable(op) || isa<tile::LoadOp, tile::ScalarOp>(op))
    return true;
  if (!op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
    return false;
  return llvm::all_of(op->getRegions(), [](Region &region) {
    return llvm::all_of(region.getOps(), [](Operation &inner) { return runsAnywhere(&inner); });
  });
}

class SoftwarePipeline {
public:
  /// `sharing` holds the products that read a part of a tile that an earlier product reads.
  SoftwarePipeline(scf::ForOp loop, const DenseSet<Operation *> &sharing)
      : loop(loop), builder(loop), loc(loop.getLoc()), sharing(sharing) {}

  /// Finds the parts of the loop, or returns why it does not have the form above.
  WhyNot whyNot() {
    SmallVector<tile::DotOp> dots(loop.getBody()->getOps<tile::DotOp>());
    if (dots.size() != 2)
      return "it has " + counted(dots.size(), "product") + ", and two can overlap so";
    if (!matchPattern(loop.getStep(), m_One()))
      return "its counter does not count by 1";
    first = dots[0];
    second = dots[1];
    if (sharing.contains(second))
      return "its second product reads a part of a tile that the first product reads";
    int64_t mostColumns = heuristicsOf(loop->getParentOfType<tile::KernelOp>()).mostColumnsOfBytes;
    if (isOfBytes(second) && cast<RankedTensorType>(second.getType()).getDimSize(1) <= mostColumns)
      return "its second product has 8-bit operands and at most " + std::to_string(mostColumns) +
             " columns, and is shorter than the delay";
    auto carried =
        second->hasOneUse() ? llvm::find(loop.getYieldedValues(), second.getResult()) : loop.getYieldedValues().end();
    if (carried == loop.getYieldedValues().end())
      return "its second product is not the sum that the loop carries";
    accumulator = carried - loop.getYieldedValues().begin();
    operandOps = sliceIn(*loop.getBody(), second.getRhs());
    firstOps = sliceIn(*loop.getBody(), first.getResult());
    // If the loop does not run, its result is the initial accumulator, which must cost no registers beside the
    // accumulator.
    if (!isZero(loop.getInitArgs()[accumulator]))
      return "the sum of its second product does not begin at zero";
    // The first product must not depend on the accumulator, nor the second product's right operand on the first
    // product.
    BlockArgument sum = loop.getRegionIterArg(accumulator);
    auto reads = [&](Operation *op, Value value) {
      return llvm::any_of(value.getUsers(), [&](Operation *user) { return op->isAncestor(user); });
    };
    if (llvm::any_of(firstOps, [&](Operation *op) { return reads(op, sum); }))
      return "its first product depends on the sum of the second";
    if (operandOps.contains(first) || llvm::any_of(operandOps, [&](Operation *op) {
          return llvm::any_of(loop.getRegionIterArgs(), [&](Value carried) { return reads(op, carried); });
        }))
      return "the right operand of its second product depends on the first product, or on what the loop carries";
    SetVector<Operation *> leftOps = sliceIn(*loop.getBody(), second.getLhs());
    if (!leftOps.contains(first))
      return "its second product does not read what is computed from the first";
    if (llvm::any_of(leftOps, [&](Operation *op) { return reads(op, sum); }))
      return "the left operand of its second product depends on the sum of earlier iterations";
    if (!llvm::all_of(loop.getBody()->without_terminator(), [](Operation &op) { return runsAnywhere(&op); }))
      return "it stores, gathers, or has another effect, which cannot run an iteration earlier";
    return std::nullopt;
  }

  void run() {
    unsigned count = loop.getNumRegionIterArgs();
    // The first iteration, up to its second product.
    IRMapping start;
    start.map(loop.getInductionVar(), loop.getLowerBound());
    for (auto [argument, init] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs()))
      start.map(argument, init);
    for (Operation &op : loop.getBody()->without_terminator())
      if (isOfFront(&op))
        builder.clone(op, start);
    SmallVector<Value> inits = carriedBy(start);

    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value begin = arith::AddIOp::create(builder, loc, loop.getLowerBound(), one);
    auto pipelined = scf::ForOp::create(builder, loc, begin, loop.getUpperBound(), loop.getStep(), inits);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(pipelined.getBody());
      IRMapping body, before;
      body.map(loop.getInductionVar(), pipelined.getInductionVar());
      for (unsigned i = 0, next = 0; i < count; ++i)
        if (i != accumulator)
          body.map(loop.getRegionIterArg(i), pipelined.getRegionIterArg(next++));
      Value left = pipelined.getRegionIterArg(count - 1), sum = pipelined.getRegionIterArg(count);
      for (Operation &op : loop.getBody()->without_terminator())
        if (firstOps.contains(&op))
          builder.clone(op, body);
      Value previous = arith::SubIOp::create(builder, loc, pipelined.getInductionVar(), one);
      body.map(loop.getRegionIterArg(accumulator), multiply(left, sum, previous));
      for (Operation &op : loop.getBody()->without_terminator())
        if (isOfFront(&op) && !firstOps.contains(&op))
          builder.clone(op, body);
      SmallVector<Value> yielded = carriedBy(body);
      if (!pipelined.getBody()->empty() && isa<scf::YieldOp>(pipelined.getBody()->back()))
        pipelined.getBody()->back().erase();
      scf::YieldOp::create(builder, loc, yielded);
    }
    Value last = arith::SubIOp::create(builder, loc, loop.getUpperBound(), one);
    Value product = multiply(pipelined.getResult(count - 1), pipelined.getResult(count), last);
    Value runs =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
    for (unsigned i = 0, next = 0; i < count; ++i) {
      Value result = i == accumulator ? product : pipelined.getResult(next++);
      loop.getResult(i).replaceAllUsesWith(arith::SelectOp::create(builder, loc, runs, result, loop.getInitArgs()[i]));
    }
    loop.erase();
  }

private:
  static bool isOfBytes(tile::DotOp dot) {
    return getElementTypeOrSelf(dot.getLhs().getType()).getIntOrFloatBitWidth() == 8;
  }

  /// Returns whether the op does more than compute the second product's right operand.
  bool isOfFront(Operation *op) {
    if (op == second.getOperation())
      return false;
    if (!operandOps.contains(op))
      return true;
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *here = loop.getBody()->findAncestorOpInBlock(*user);
      return here && here != second.getOperation() && here != loop.getBody()->getTerminator() && isOfFront(here);
    });
  }

  /// Returns the values that an iteration carries to the next. They are all yielded values except the accumulator,
  /// then the left operand and the accumulator of the second product.
  SmallVector<Value> carriedBy(const IRMapping &mapping) {
    SmallVector<Value> values;
    for (auto [i, value] : llvm::enumerate(loop.getYieldedValues()))
      if (i != accumulator)
        values.push_back(mapping.lookupOrDefault(value));
    values.push_back(mapping.lookupOrDefault(second.getLhs()));
    values.push_back(mapping.lookupOrDefault(second.getAccumulator()));
    return values;
  }

  /// Builds the second product of iteration `number`.
  Value multiply(Value left, Value sum, Value number) {
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), number);
    for (Operation *op : operandOps)
      builder.clone(*op, mapping);
    mapping.map(second.getLhs(), left);
    mapping.map(second.getAccumulator(), sum);
    return builder.clone(*second, mapping)->getResult(0);
  }

  scf::ForOp loop;
  OpBuilder builder;
  Location loc;
  tile::DotOp first, second;
  unsigned accumulator = 0;
  SetVector<Operation *> operandOps, firstOps;
  const DenseSet<Operation *> &sharing;
};

constexpr Optimisation kOverlap{"kgpu-pipeline-products", "products of two iterations in flight"};

struct PipelineProducts final : impl::KgpuPipelineProductsBase<PipelineProducts> {
  void runOnOperation() override {
    ArrayRef<StreamedDot> products = getAnalysis<StreamedDots>().products;
    DenseSet<Operation *> sharing;
    for (const StreamedDot &product : products)
      if (wholeOf(product, products))
        sharing.insert(product.dot);
    // Peeled products come into the loop around, which is not pipelined.
    SmallVector<scf::ForOp> loops = opsIn<scf::ForOp>(getOperation());
    llvm::erase_if(loops, [](scf::ForOp loop) { return loop.getBody()->getOps<tile::DotOp>().empty(); });
    bool changes = false;
    for (scf::ForOp loop : loops) {
      SoftwarePipeline pipeline(loop, sharing);
      if (!remarkOn(loop, kOverlap, pipeline.whyNot(),
                    "its second product runs beside the arithmetic of the next iteration"))
        continue;
      pipeline.run();
      changes = true;
    }
    if (!changes)
      markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace kpkg::kgpu
