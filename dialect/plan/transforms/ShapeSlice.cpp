// Slices a plan down to the ops that determine result shapes and errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before:                                           After (with canonicalize):
//   %out = plan.empty_like %input                     plan.check_dim %input, %dim
//   %x = plan.transpose %input, %dim, %c1             %out = plan.empty_like %input
//   %n = plan.dim %x, %c2                             plan.return %out
//   %wide = arith.cmpi sgt, %n, %c1
//   scf.if %wide { plan.launch ... } else { ... }
//   plan.return %out
//
// On entry: any plan.
// On exit: no launch remains.
//
// Errors that depend on extents of a view that only fed a launch are not kept. Examples are an index out of range, or a
// reshape that does not fit. They would cost a guard each.
#include "dialect/plan/transforms/ShapeSlice.h"
#include "dialect/plan/transforms/Passes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#define DEBUG_TYPE "plan-shape-slice"

using namespace mlir;

namespace kpkg::plan_ir {
#define GEN_PASS_DEF_PLANSHAPESLICE
#include "dialect/plan/transforms/Passes.h.inc"

namespace {

/// Returns the operands that name dimensions of operand 0.
SmallVector<Value, 2> dimensionsOf(Operation *op) {
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return {transpose.getDim0(), transpose.getDim1()};
  if (auto slice = dyn_cast<SliceOp>(op))
    return {slice.getDim()};
  if (auto unfold = dyn_cast<UnfoldOp>(op))
    return {unfold.getDim()};
  if (auto dim = dyn_cast<DimOp>(op))
    return {dim.getDim()};
  if (auto stride = dyn_cast<StrideOp>(op))
    return {stride.getDim()};
  return {};
}

struct PlanShapeSlice final : impl::PlanShapeSliceBase<PlanShapeSlice> {
  void runOnOperation() override {
    SmallVector<LaunchOp> removed;
    DenseSet<std::tuple<Block *, Value, Value>> checked;
    getOperation().walk([&](Operation *op) {
      if (auto launch = dyn_cast<LaunchOp>(op))
        removed.push_back(launch);
      if (isa<ExpandOp, SqueezeOp, FoldOp>(op)) { // A fold's range depends on the rank: 0 folds along 0 and -1.
        OpBuilder builder(op->getContext());
        builder.setInsertionPointAfter(op);
        CheckOp::create(builder, op->getLoc(), op->getResult(0));
      }
      // A constant dimension is valid or not for a rank by the author's design. An argument comes from the caller.
      for (Value dim : dimensionsOf(op))
        if (!matchPattern(dim, m_Constant()) && checked.insert({op->getBlock(), op->getOperand(0), dim}).second) {
          OpBuilder builder(op);
          CheckDimOp::create(builder, op->getLoc(), op->getOperand(0), dim);
        }
    });
    launches += removed.size();
    for (LaunchOp launch : removed)
      launch.erase();
  }
};

} // namespace

OwningOpRef<ModuleOp> makeShapeSlice(FuncOp function) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
  SmallVector<FuncOp> pending{function};
  while (!pending.empty()) {
    FuncOp next = pending.pop_back_val();
    if (module->lookupSymbol(next.getName()))
      continue;
    module->push_back(next.clone());
    next.walk([&](CallOp call) {
      if (auto callee = SymbolTable::lookupNearestSymbolFrom<FuncOp>(call, call.getCalleeAttr()))
        pending.push_back(callee);
    });
  }
  PassManager passes(function.getContext());
  passes.addNestedPass<FuncOp>(createPlanShapeSlice());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createCanonicalizerPass());
  if (failed(passes.run(*module)))
    return {};
  // Tracing has no device, and a graph may run on another device.
  WalkResult walked = module->walk([](ProcessorsOp op) {
    op.emitError("the shape of a result, or an error that is raised, depends on `processors()`; only launches and "
                 "temporary tensors may");
    return WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return {};
  return module;
}

} // namespace kpkg::plan_ir
