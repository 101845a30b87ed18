// Gives the tensors of a plan shadow memory, for kernels that check accesses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before:                                          After:
//   %y = plan.empty_like %x                          %y = plan.empty_like %x
//                                                    %w = plan.empty (plan.shape %y), int32; a launch fills it with 0
//   %t = plan.transpose %y, %c0, %c1                 %t = plan.transpose %y, %c0, %c1
//                                                    %v = plan.transpose %w, %c0, %c1
//   plan.launch "k" (%x, mut %t)                     plan.launch "k" (%x, mut %t, %none, mut %v)
//
// On entry: any plan.
// On exit: launches have shadow arguments.
//
// The shadow of written elements lives as long as its tensor, and views of both correspond. It is absent for tensors of
// callers, which have been written. The cells of accesses live for one launch. Views of one tensor share them; two
// arguments of an op that share memory do not.
#include "dialect/plan/transforms/AddShadows.h"
#include "dialect/plan/transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::plan_ir {
#define GEN_PASS_DEF_PLANADDSHADOWS
#include "dialect/plan/transforms/Passes.h.inc"

namespace {

/// Elements that a block of the filling kernel writes.
constexpr int64_t filledByBlock = 4096;

/// Returns whether an op makes a view of its first operand, a tensor.
bool isView(Operation *op) {
  return isa<TransposeOp, PermuteOp, ExpandOp, DropOp, SliceOp, UnsqueezeOp, SqueezeOp, UnfoldOp, FoldOp, ReshapeOp,
             ContiguousOp>(op);
}

bool isTensor(Value value) { return isa<TensorType>(value.getType()); }

class ShadowPlanner {
public:
  ShadowPlanner(FuncOp function, const ShadowArguments &wanted)
      : function(function), wanted(wanted), builder(function.getContext()), loc(function.getLoc()) {}

  void run() {
    Block &entry = function.getBody().front();
    builder.setInsertionPointToStart(&entry);
    none = NoneOp::create(builder, loc, TensorType::get(builder.getContext()));
    block(entry);
  }

private:
  FuncOp function;
  const ShadowArguments &wanted;
  OpBuilder builder;
  Location loc;
  Value none;
  /// The shadows of written elements. A tensor without one has been written.
  DenseMap<Value, Value> written;
  /// Shadows that are null at run time where their tensors have been written.
  DenseSet<Value> mayBeNull;

  Value shadowOf(Value tensor) const {
    Value shadow = written.lookup(tensor);
    return shadow ? shadow : none;
  }

  Value integer(int64_t number) { return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(number)); }

  /// Builds a tensor, or null where `tensor` is null.
  template <typename Make> Value unlessNull(Value tensor, Make make) {
    Value isNull = IsNoneOp::create(builder, loc, tensor);
    auto branch = scf::IfOp::create(builder, loc, TypeRange(none.getType()), isNull, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, none);
    builder.setInsertionPointToStart(branch.elseBlock());
    Value made = make();
    scf::YieldOp::create(builder, loc, made);
    return branch.getResult(0);
  }

  /// Writes a number to all elements of a shadow that is not null.
  void fill(Value shadow, int64_t number) {
    Value all = ListOp::create(builder, loc, ValueRange(integer(-1)));
    Value flat = ReshapeOp::create(builder, loc, shadow, all);
    Value count = NumelOp::create(builder, loc, shadow);
    Value blocks = arith::FloorDivSIOp::create(
        builder, loc, arith::AddIOp::create(builder, loc, count, integer(filledByBlock - 1)), integer(filledByBlock));
    LaunchOp::create(builder, loc, builder.getStringAttr(wanted.fill), builder.getStrArrayAttr({}),
                     builder.getDenseBoolArrayAttr({}), builder.getDenseBoolArrayAttr({false, true}), ValueRange(),
                     ValueRange({integer(number), flat}), ValueRange(blocks));
  }

  /// Allocates an int32 tensor of 0 in the shape of a tensor.
  Value zerosLike(Value tensor) {
    Value dtype = DTypeConstantOp::create(builder, loc, DTypeType::get(builder.getContext()), "int32");
    Value zeros = EmptyOp::create(builder, loc, ShapeOp::create(builder, loc, tensor), dtype);
    fill(zeros, 0);
    return zeros;
  }

  /// Makes the view of `source` that `view` makes of its operand.
  Value viewed(Operation *view, Value source) {
    auto make = [&] {
      IRMapping mapping;
      mapping.map(view->getOperand(0), source);
      return builder.clone(*view, mapping)->getResult(0);
    };
    if (!mayBeNull.contains(source))
      return make();
    Value result = unlessNull(source, make);
    mayBeNull.insert(result);
    return result;
  }

  //===--- Ops ----------------------------------------------------------------------------------------------------===//

  void block(Block &body) {
    for (Operation &op : llvm::make_early_inc_range(body))
      llvm::TypeSwitch<Operation *>(&op)
          .Case<EmptyOp, EmptyLikeOp>([&](auto made) { allocation(made); })
          .Case([&](LaunchOp launch) { addArguments(launch); })
          .Case([&](CallOp call) { opCall(call); })
          .Case([&](scf::IfOp branch) { ifOp(branch); })
          .Case([&](scf::ForOp loop) { forOp(loop); })
          .Case([&](scf::WhileOp loop) { whileOp(loop); })
          .Default([&](Operation *other) {
            if (Value shadow = isView(other) ? written.lookup(other->getOperand(0)) : Value()) {
              builder.setInsertionPointAfter(other);
              written[other->getResult(0)] = viewed(other, shadow);
            }
          });
  }

  void allocation(Operation *made) {
    if (!wanted.written)
      return;
    builder.setInsertionPointAfter(made);
    written[made->getResult(0)] = zerosLike(made->getResult(0));
  }

  /// Marks what another op may write as written.
  void opCall(CallOp call) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<FuncOp>(call, call.getCalleeAttr());
    builder.setInsertionPointAfter(call);
    for (auto [number, argument] : llvm::enumerate(call.getArgs()))
      if (Value shadow = written.lookup(argument); shadow && callee.isArgMut(number)) {
        auto mark = [&] { return fill(shadow, 1), shadow; };
        if (mayBeNull.contains(shadow))
          unlessNull(shadow, mark);
        else
          mark();
      }
  }

  /// Returns the cells of an argument's elements for one launch.
  Value cellsOf(Value tensor, DenseMap<Value, Value> &cells) {
    if (Value known = cells.lookup(tensor))
      return known;
    Value made;
    if (Operation *view = tensor.getDefiningOp(); view && isView(view))
      made = viewed(view, cellsOf(view->getOperand(0), cells));
    else if (view && isa<NoneOp>(view))
      made = none;
    else if (view && isa<EmptyOp, EmptyLikeOp>(view))
      made = zerosLike(tensor);
    else
      mayBeNull.insert(made = unlessNull(tensor, [&] { return zerosLike(tensor); }));
    return cells[tensor] = made;
  }

  void addArguments(LaunchOp launch) {
    if (launch.getKernel() == wanted.fill)
      return;
    builder.setInsertionPoint(launch);
    SmallVector<Value> arguments(launch.getArgs());
    SmallVector<bool> isMut(launch.getArgMut());
    DenseMap<Value, Value> cells;
    for (auto [number, tensor] : llvm::enumerate(launch.getArgs())) {
      if (!isTensor(tensor))
        continue;
      // Each is mutable where its tensor is. Kernels write the cells of other tensors too, of which repeated elements
      // may share one.
      if (wanted.written)
        arguments.push_back(shadowOf(tensor));
      if (wanted.accesses)
        arguments.push_back(cellsOf(tensor, cells));
      isMut.resize(arguments.size(), launch.getArgMut()[number]);
    }
    LaunchOp::create(builder, launch.getLoc(), launch.getKernelAttr(), launch.getParamNamesAttr(),
                     launch.getParamAtLeastAttr(), builder.getDenseBoolArrayAttr(isMut), launch.getParams(), arguments,
                     launch.getGrid());
    launch.erase();
  }

  //===--- Control flow -------------------------------------------------------------------------------------------===//

  /// Returns the shadows of all tensors among the values.
  SmallVector<Value> shadowsOf(ValueRange values) {
    SmallVector<Value> shadows;
    for (Value value : values)
      if (wanted.written && isTensor(value))
        shadows.push_back(shadowOf(value));
    return shadows;
  }

  /// Assigns shadows to all tensors among the values, in order.
  void assign(ValueRange tensors, ValueRange shadows) {
    for (Value tensor : tensors)
      if (wanted.written && isTensor(tensor)) {
        written[tensor] = shadows.front();
        mayBeNull.insert(shadows.front());
        shadows = shadows.drop_front();
      }
  }

  /// Appends the shadows of the tensors that a terminator passes on.
  void appendShadows(Operation *terminator, ValueRange passed) {
    terminator->insertOperands(terminator->getNumOperands(), shadowsOf(passed));
  }

  /// Returns the types of an op's results, followed by those of their shadows.
  SmallVector<Type> withShadows(ValueRange results) {
    SmallVector<Type> types(results.getTypes());
    types.append(shadowsOf(results).size(), none.getType());
    return types;
  }

  /// Replaces a loop or branch by one with more results, and takes over its regions.
  void replace(Operation *old, Operation *made) {
    for (auto [from, to] : llvm::zip(old->getRegions(), made->getRegions()))
      to.takeBody(from);
    size_t count = old->getNumResults();
    assign(made->getResults().take_front(count), made->getResults().drop_front(count));
    old->replaceAllUsesWith(made->getResults().take_front(count));
    old->erase();
  }

  void addBlockArguments(Block &body, ValueRange tensors) {
    SmallVector<Value> added;
    for (size_t i = shadowsOf(tensors).size(); i > 0; --i)
      added.push_back(body.addArgument(none.getType(), loc));
    assign(tensors, added);
  }

  void ifOp(scf::IfOp branch) {
    for (Region &region : branch->getRegions())
      if (!region.empty()) {
        block(region.front());
        Operation *yield = region.front().getTerminator();
        appendShadows(yield, SmallVector<Value>(yield->getOperands()));
      }
    if (shadowsOf(branch.getResults()).empty())
      return;
    builder.setInsertionPoint(branch);
    auto made = scf::IfOp::create(builder, branch.getLoc(), withShadows(branch.getResults()), branch.getCondition(),
                                  /*addThenBlock=*/false, /*addElseBlock=*/false);
    replace(branch, made);
  }

  void forOp(scf::ForOp loop) {
    Block &body = *loop.getBody();
    SmallVector<Value> inits(loop.getInitArgs()), carried(loop.getRegionIterArgs());
    llvm::append_range(inits, shadowsOf(loop.getInitArgs()));
    addBlockArguments(body, carried);
    block(body);
    appendShadows(body.getTerminator(), SmallVector<Value>(body.getTerminator()->getOperands()));
    if (shadowsOf(loop.getResults()).empty())
      return;
    builder.setInsertionPoint(loop);
    auto made =
        scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits);
    replace(loop, made);
  }

  void whileOp(scf::WhileOp loop) {
    SmallVector<Value> inits(loop.getInits());
    llvm::append_range(inits, shadowsOf(loop.getInits()));
    addBlockArguments(*loop.getBeforeBody(), SmallVector<Value>(loop.getBeforeArguments()));
    block(*loop.getBeforeBody());
    appendShadows(loop.getConditionOp(), SmallVector<Value>(loop.getConditionOp().getArgs()));
    addBlockArguments(*loop.getAfterBody(), SmallVector<Value>(loop.getAfterArguments()));
    block(*loop.getAfterBody());
    appendShadows(loop.getYieldOp(), SmallVector<Value>(loop.getYieldOp().getOperands()));
    builder.setInsertionPoint(loop);
    auto made = scf::WhileOp::create(builder, loop.getLoc(), withShadows(loop.getResults()), inits);
    replace(loop, made);
  }
};

struct PlanAddShadows final : impl::PlanAddShadowsBase<PlanAddShadows> {
  using PlanAddShadowsBase::PlanAddShadowsBase;
  void runOnOperation() override { addShadows(getOperation(), {written, accesses, fill}); }
};

} // namespace

void addShadows(FuncOp function, const ShadowArguments &shadows) { ShadowPlanner(function, shadows).run(); }

} // namespace kpkg::plan_ir
