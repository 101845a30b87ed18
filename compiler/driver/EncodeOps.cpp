// Ops to plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/EncodeOps.h"
#include "compiler/driver/IrMessages.h"
#include "compiler/irgen/Generate.h"
#include "compiler/pack/EncodePlan.h"
#include "dialect/pipeline/Registration.h"
#include "dialect/plan/transforms/ShapeSlice.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

std::unique_ptr<mlir::MLIRContext> makeContext() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

/// The plans of all ops, simplified.
mlir::OwningOpRef<mlir::ModuleOp> simplifiedOps(const Program &program, const SourceManager &sources,
                                                mlir::MLIRContext &context) {
  auto module = generateOps(program, sources, context);
  if (!module)
    return nullptr;
  mlir::PassManager passes(&context);
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  if (failed(passes.run(*module)))
    return nullptr;
  return module;
}

} // namespace

Expected<std::vector<PackedPlan>> encodeOps(const Program &program, const SourceManager &sources) {
  auto context = makeContext();
  IrMessages messages(*context);
  auto failure = [&](const std::string &op) {
    return createStringError("cannot encode the plan of %s: %s", op.c_str(), messages.text().c_str());
  };
  auto module = simplifiedOps(program, sources, *context);
  if (!module)
    return failure("the ops");
  std::vector<PackedPlan> plans;
  for (const OpRecord &op : program.ops()) {
    auto function = module->lookupSymbol<plan_ir::FuncOp>(op.name);
    if (!function)
      return failure(op.name);
    auto slice = plan_ir::makeShapeSlice(function);
    if (!slice)
      return failure(op.name);
    auto plan = encodePlan(function);
    auto shapePlan = encodePlan(slice->lookupSymbol<plan_ir::FuncOp>(op.name));
    if (failed(plan) || failed(shapePlan))
      return failure(op.name);
    plans.push_back({op.name, std::move(*plan), std::move(*shapePlan)});
  }
  return plans;
}

Expected<std::string> emitPlan(const Program &program, const SourceManager &sources) {
  auto context = makeContext();
  IrMessages messages(*context);
  auto module = simplifiedOps(program, sources, *context);
  if (!module)
    return createStringError("%s", messages.text().c_str());
  std::string text;
  raw_string_ostream stream(text);
  module->print(stream);
  return text;
}

} // namespace kpkg::compiler
