// Compiles ops to plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/EncodeOps.h"
#include "compiler/driver/IrMessages.h"
#include "compiler/driver/Simplify.h"
#include "compiler/irgen/Generate.h"
#include "compiler/pack/EncodePlan.h"
#include "dialect/pipeline/Registration.h"
#include "dialect/plan/transforms/AddShadows.h"
#include "dialect/plan/transforms/ShapeSlice.h"
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

/// Returns the simplified plans of all ops.
mlir::OwningOpRef<mlir::ModuleOp> simplifiedOps(const Program &program, const SourceManager &sources,
                                                mlir::MLIRContext &context) {
  auto module = generateOps(program, sources, context);
  if (const std::vector<std::string> &shadows = program.shadows(); module && !shadows.empty())
    for (auto function : module->getOps<plan_ir::FuncOp>())
      plan_ir::addShadows(function, {is_contained(shadows, writtenShadow), is_contained(shadows, accessesShadow),
                                     program.fillOfShadows().name});
  return simplified(std::move(module));
}

/// Returns the arguments that describe windows of tensor maps. They are decisive: planning a call tests whether the
/// driver can create such a map.
KernelArguments argumentsOfWindows(const Program &program, ArrayRef<PackedInstance> instances) {
  KernelArguments arguments;
  for (const PackedInstance &instance : instances)
    for (const manifest::TensorMap &map :
         instance.launch ? instance.launch->tensorMaps : std::vector<manifest::TensorMap>())
      if (map.window)
        for (const std::vector<int32_t> *numbers :
             {&map.window->counts, &map.window->strides, &map.window->starts, &map.window->steps})
          for (int32_t argument : *numbers)
            arguments.insert({program.kernels()[instance.kernel].name, unsigned(argument)});
  return arguments;
}

/// Adds the arguments in cost formulas of alternatives. They are decisive, because planning a call chooses an
/// alternative by them.
void addArgumentsOfEstimates(const Program &program, ArrayRef<PackedInstance> instances, KernelArguments &arguments) {
  for (const PackedInstance &instance : instances)
    if (instance.work)
      for (const std::vector<manifest::CostTerm> *terms : {&instance.work->flops, &instance.bytes, &instance.tiles})
        for (const manifest::CostTerm &term : *terms)
          for (const manifest::CostFactor &factor : term.factors)
            for (const manifest::TripCountStep &step : factor.steps)
              if (step.kind == manifest::StepKind::Value)
                arguments.insert({program.kernels()[instance.kernel].name, unsigned(step.number)});
}

Expected<std::vector<PackedPlan>> encodeOps(const Program &program, const SourceManager &sources,
                                            const KernelArguments &decisive) {
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
    auto plan = encodePlan(function, decisive);
    auto shapePlan = encodePlan(slice->lookupSymbol<plan_ir::FuncOp>(op.name));
    if (failed(plan) || failed(shapePlan))
      return failure(op.name);
    plans.push_back({op.name, std::move(*plan), std::move(*shapePlan)});
  }
  return plans;
}

} // namespace

Expected<std::vector<PackedPlan>> encodeOps(const Program &program, const Program &gpuProgram,
                                            const SourceManager &sources, ArrayRef<PackedInstance> instances) {
  KernelArguments decisive = argumentsOfWindows(program, instances);
  addArgumentsOfEstimates(program, instances, decisive);
  auto plans = encodeOps(program, sources, decisive);
  if (!plans || &gpuProgram == &program)
    return plans;
  auto gpuPlans = encodeOps(gpuProgram, sources, decisive);
  if (!gpuPlans)
    return gpuPlans.takeError();
  for (auto [op, gpuOp] : zip_equal(program.ops(), gpuProgram.ops()))
    if (op.schema != gpuOp.schema)
      return createStringError("the signature of %s depends on the target: %s on CPUs, %s on GPUs", op.name.c_str(),
                               op.schema.c_str(), gpuOp.schema.c_str());
  for (auto [plan, gpuPlan] : zip_equal(*plans, *gpuPlans)) {
    if (gpuPlan.plan != plan.plan)
      plan.gpuPlan = std::move(gpuPlan.plan);
    if (gpuPlan.shapePlan != plan.shapePlan)
      plan.gpuShapePlan = std::move(gpuPlan.shapePlan);
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
