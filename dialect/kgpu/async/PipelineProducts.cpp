// Rotates a loop with two products, one from the other: the second product of an iteration runs under the arithmetic of
// the next one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %j = %lo to %hi iter_args(%acc) { %s = dot(%q, %k[%j]); ... %p, %x = f(%s), %acc * g(%s) ...; %acc' =
// dot(%p, %v[%j], %x) } After:  %s = dot(%q, %k[%lo]); %p, %x = f(%s), %acc * g(%s)
//         scf.for %j = %lo + 1 to %hi iter_args(%p, %x) {
//           %s = dot(%q, %k[%j]);  %acc = dot(%p, %v[%j - 1], %x);  %p', %x' = f(%s), %acc * g(%s) }
//         %acc' = dot(%p, %v[%hi - 1], %x)
//
// On entry: a kernel with `kgpu.consumers` and layouts, without tile.for_tiles. On exit: loops of this form are
// rotated. In the loop the first product and the second one of the iteration before are issued one behind the other;
// f(%s) needs only the first. Source of the schedule: Shah et al., FlashAttention-3, 2024, section 3.2. A loop that
// never runs would have run its first part for operands outside of the views, which are zeros then; its results are not
// taken. A loop stays as it is where the second operand is a part of what the first product reads: rotated it would
// hold two slots. So does one whose second product has up to 128 columns and reads 8 bits from registers: its products
// take half the time of those of 16 bits, other warpgroups' arithmetic hides them, and probabilities that wait for the
// next iteration only delay. Measured on an H200 with attention, heads of 128: 3 to 6 % of the time.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/async/StreamedDots.h"
#include "dialect/kgpu/ir/Repeatable.h"
#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPIPELINEPRODUCTS
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// Whether the op may run an iteration sooner: pure ops, loads (outside of a view they give what they are told), and
/// ops that hold nothing else. Gathers may not: registers that hold their elements until they come are those that a
/// rotated loop takes (measured on an H200 with attention whose scores are gathered: 13 % of the time).
bool runsAnywhere(Operation *op) {
  if (isRepeatable(op) || isa<tile::LoadOp>(op))
    return true;
  if (!op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
    return false;
  return llvm::all_of(op->getRegions(), [](Region &region) {
    return llvm::all_of(region.getOps(), [](Operation &inner) { return runsAnywhere(&inner); });
  });
}

class Rotation {
public:
  /// `sharing` are the products that read a part of what an earlier one reads.
  Rotation(scf::ForOp loop, const DenseSet<Operation *> &sharing)
      : loop(loop), builder(loop), loc(loop.getLoc()), sharing(sharing) {}

  /// Whether the loop has the form above; finds its parts.
  bool matches() {
    SmallVector<tile::DotOp> dots(loop.getBody()->getOps<tile::DotOp>());
    if (dots.size() != 2 || !matchPattern(loop.getStep(), m_One()))
      return false;
    first = dots[0];
    second = dots[1];
    if (sharing.contains(second) || isShort(second))
      return false;
    auto carried =
        second->hasOneUse() ? llvm::find(loop.getYieldedValues(), second.getResult()) : loop.getYieldedValues().end();
    if (carried == loop.getYieldedValues().end())
      return false;
    accumulator = carried - loop.getYieldedValues().begin();
    operandOps = sliceOf({second.getRhs()});
    firstOps = sliceOf({first.getResult()});
    // A loop that never runs leaves what the sum starts with: it must cost no registers beside the sum.
    if (!isZero(loop.getInitArgs()[accumulator]))
      return false;
    // The first product knows nothing of the sum, and the second operand of the second one nothing of the first.
    BlockArgument sum = loop.getRegionIterArg(accumulator);
    auto reads = [&](Operation *op, Value value) {
      return llvm::any_of(value.getUsers(), [&](Operation *user) { return op->isAncestor(user); });
    };
    if (llvm::any_of(firstOps, [&](Operation *op) { return reads(op, sum); }) || operandOps.contains(first) ||
        llvm::any_of(operandOps, [&](Operation *op) {
          return llvm::any_of(loop.getRegionIterArgs(), [&](Value carried) { return reads(op, carried); });
        }))
      return false;
    SetVector<Operation *> leftOps = sliceOf({second.getLhs()});
    return leftOps.contains(first) && llvm::none_of(leftOps, [&](Operation *op) { return reads(op, sum); }) &&
           llvm::all_of(loop.getBody()->without_terminator(), [](Operation &op) { return runsAnywhere(&op); });
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
    auto rotated = scf::ForOp::create(builder, loc, begin, loop.getUpperBound(), loop.getStep(), inits);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(rotated.getBody());
      IRMapping body, before;
      body.map(loop.getInductionVar(), rotated.getInductionVar());
      for (unsigned i = 0, next = 0; i < count; ++i)
        if (i != accumulator)
          body.map(loop.getRegionIterArg(i), rotated.getRegionIterArg(next++));
      Value left = rotated.getRegionIterArg(count - 1), sum = rotated.getRegionIterArg(count);
      for (Operation &op : loop.getBody()->without_terminator())
        if (firstOps.contains(&op))
          builder.clone(op, body);
      Value previous = arith::SubIOp::create(builder, loc, rotated.getInductionVar(), one);
      body.map(loop.getRegionIterArg(accumulator), multiply(left, sum, previous));
      for (Operation &op : loop.getBody()->without_terminator())
        if (isOfFront(&op) && !firstOps.contains(&op))
          builder.clone(op, body);
      SmallVector<Value> yielded = carriedBy(body);
      if (!rotated.getBody()->empty() && isa<scf::YieldOp>(rotated.getBody()->back()))
        rotated.getBody()->back().erase();
      scf::YieldOp::create(builder, loc, yielded);
    }
    Value last = arith::SubIOp::create(builder, loc, loop.getUpperBound(), one);
    Value product = multiply(rotated.getResult(count - 1), rotated.getResult(count), last);
    Value runs =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
    for (unsigned i = 0, next = 0; i < count; ++i) {
      Value result = i == accumulator ? product : rotated.getResult(next++);
      loop.getResult(i).replaceAllUsesWith(arith::SelectOp::create(builder, loc, runs, result, loop.getInitArgs()[i]));
    }
    loop.erase();
  }

private:
  /// Whether the product takes so little time that it is not worth to carry what it reads.
  static bool isShort(tile::DotOp dot) {
    constexpr int64_t mostColumns = 128;
    unsigned bits = getElementTypeOrSelf(dot.getLhs().getType()).getIntOrFloatBitWidth();
    return bits == 8 && cast<RankedTensorType>(dot.getType()).getDimSize(1) <= mostColumns;
  }

  /// The ops of the body that lead to these values.
  SetVector<Operation *> sliceOf(ArrayRef<Value> values) {
    SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.inclusive = true;
    options.omitBlockArguments = true;
    options.omitUsesFromAbove = false; // what an scf.if reads
    options.filter = [&](Operation *op) { return op->getBlock() == loop.getBody(); };
    for (Value value : values)
      if (value.getParentBlock() == loop.getBody() && value.getDefiningOp())
        (void)getBackwardSlice(value, &slice, options);
    return slice;
  }

  /// Whether the op does more than lead to the operand that the second product reads from memory.
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

  /// What an iteration hands on: all that it yields but the sum, then the left operand and the accumulator of its
  /// second product.
  SmallVector<Value> carriedBy(const IRMapping &mapping) {
    SmallVector<Value> values;
    for (auto [i, value] : llvm::enumerate(loop.getYieldedValues()))
      if (i != accumulator)
        values.push_back(mapping.lookupOrDefault(value));
    values.push_back(mapping.lookupOrDefault(second.getLhs()));
    values.push_back(mapping.lookupOrDefault(second.getAccumulator()));
    return values;
  }

  /// The second product of iteration `number`.
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

struct PipelineProducts final : impl::KgpuPipelineProductsBase<PipelineProducts> {
  void runOnOperation() override {
    if (getLaunch(getOperation()).consumers == 0)
      return;
    std::vector<StreamedDot> products = streamedDots(getOperation(), targetOf(getOperation()));
    DenseSet<Operation *> sharing;
    for (const StreamedDot &product : products)
      if (wholeOf(product, products))
        sharing.insert(product.dot);
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (Rotation rotation(loop, sharing); rotation.matches())
        rotation.run();
  }
};
} // namespace
} // namespace kpkg::kgpu
