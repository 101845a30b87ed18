// Writes the manifest of a package from the results of a build.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/pack/Manifest.h"
#include "runtime/include/kpkg/kpkg.h"
#include "llvm/Config/llvm-config.h"
#include <map>
#include <set>

namespace kpkg::compiler {

using nlohmann::json;

json valueRecord(const Value &value) {
  if (value.isBool())
    return value.asBool();
  if (value.isInt())
    return value.asInt();
  if (value.isFloat())
    return value.asFloat();
  if (value.isString())
    return value.asString();
  if (value.isDType())
    return std::string(valueNameOf(value.asDType()));
  if (value.isFunction())
    return value.str();
  if (value.isSequence()) {
    json items = json::array();
    for (const Value &item : value.asSequence().items)
      items.push_back(valueRecord(item));
    return items;
  }
  return nullptr; // None
}

namespace {

json kernelRecord(const KernelRecord &kernel) {
  json params = json::array(), args = json::array();
  for (const KernelParameter &parameter : kernel.parameters) {
    if (parameter.kind == "function") // the runtime treats it as a name
      params.push_back({{"name", parameter.name}, {"kind", "string"}, {"function", true}});
    else
      params.push_back({{"name", parameter.name}, {"kind", parameter.kind}});
    if (parameter.isTuned)
      params.back()["tuned"] = true;
  }
  for (const KernelArgument &argument : kernel.arguments) {
    json record = {{"name", argument.name}, {"kind", argument.isView ? "view" : "scalar"}, {"dtype", argument.dtype}};
    if (argument.isView) {
      record["rank"] = argument.rank;
      record["mut"] = argument.isMut;
    }
    args.push_back(std::move(record));
  }
  return {{"name", kernel.name},
          {"doc", kernel.doc},
          {"params", std::move(params)},
          {"args", std::move(args)},
          {"persistent", kernel.isPersistent}};
}

json stepRecord(const PackedTripCountStep &step) {
  if (step.kind.empty())
    return step.numbers.front();
  if (step.numbers.empty())
    return step.kind;
  json record = json::array({step.kind});
  for (int64_t number : step.numbers)
    record.push_back(number);
  return record;
}

json costRecord(const std::vector<PackedCostTerm> &terms) {
  json list = json::array();
  for (const PackedCostTerm &term : terms) {
    json factors = json::array();
    for (const PackedCostFactor &factor : term.factors) {
      json entry = json::array({factor.kind});
      for (const PackedTripCountStep &step : factor.steps)
        entry.push_back(stepRecord(step));
      if (factor.kind != "blocks" && factor.kind != "count") {
        entry.push_back(factor.argument);
        entry.push_back(factor.dimension);
      }
      if (factor.kind == "tiles" || factor.kind == "clip")
        entry.push_back(factor.size);
      factors.push_back(std::move(entry));
    }
    list.push_back({{"count", term.count}, {"factors", std::move(factors)}});
  }
  return list;
}

/// Omits facts with default values.
json factRecord(const PackedFact &fact) {
  const PackedFact none;
  json record = {{"arg", fact.argument}};
  if (fact.unit != none.unit)
    record["unit"] = fact.unit;
  if (fact.align != none.align)
    record["align"] = fact.align;
  if (fact.divisible != none.divisible)
    record["divisible"] = fact.divisible;
  if (fact.index != none.index)
    record["index"] = fact.index;
  if (fact.outer != none.outer)
    record["outer"] = fact.outer;
  return record;
}

json tensorMapRecord(const PackedTensorMap &map) {
  json record = {{"arg", map.argument}, {"box", map.box}, {"swizzle", map.swizzle}, {"unit", map.unit}};
  if (map.copies)
    record["copies"] = map.copies;
  if (map.sharedBy > 1)
    record["shared_by"] = map.sharedBy;
  if (map.window)
    record["window"] = {{"counts", map.window->counts},
                        {"strides", map.window->strides},
                        {"starts", map.window->starts},
                        {"steps", map.window->steps},
                        {"taps", map.window->taps}};
  return record;
}

json launchRecord(const PackedLaunch &launch) {
  json record = {{"threads", launch.threads},
                 {"blocks", launch.blocks},
                 {"cluster", launch.cluster},
                 {"shared", launch.shared},
                 {"registers", launch.registers}};
  if (launch.spills)
    record["spills"] = launch.spills;
  if (launch.overlaps)
    record["overlaps"] = true;
  if (launch.counters)
    record["counters"] = launch.counters;
  if (launch.occupancy)
    record["occupancy"] = launch.occupancy;
  for (const PackedTensorMap &map : launch.tensorMaps)
    record["tensor_maps"].push_back(tensorMapRecord(map));
  for (const PackedDroppedHint &hint : launch.dropped)
    record["dropped"].push_back({{"hint", hint.hint}, {"why", hint.why}});
  for (const PackedRefusedLaunch &refused : launch.refused)
    record["refused"].push_back({{"launch", refused.launch}, {"why", refused.why}});
  return record;
}

json workRecord(const PackedWork &work) {
  json record = {{"flops", costRecord(work.flops)},
                 {"flops_per_cycle", work.flopsPerCycle},
                 {"bytes_per_cycle", work.bytesPerCycle}};
  if (work.resident > 1)
    record["resident"] = work.resident;
  if (work.flopsPerCycleAlone != work.flopsPerCycle)
    record["flops_per_cycle_alone"] = work.flopsPerCycleAlone;
  return record;
}

json instanceRecord(const PackedInstance &packed, const Program &program) {
  json params = json::array(), facts = json::array();
  for (const Value &value : packed.parameters)
    params.push_back(valueRecord(value));
  for (const PackedFact &fact : packed.facts)
    facts.push_back(factRecord(fact));
  json record = {{"kernel", packed.kernel},
                 {"params", std::move(params)},
                 {"dtypes", packed.dtypes},
                 {"variant", packed.variant},
                 {"facts", std::move(facts)},
                 {"target", packed.target},
                 {"section", packed.section},
                 {"symbol", packed.symbol},
                 {"scratch", packed.scratchBytes},
                 {"asserts", packed.asserts},
                 {"prints", packed.prints},
                 {"flags", packed.isDeterministic ? json::array({"deterministic"}) : json::array()}};
  if (packed.launch)
    record["launch"] = launchRecord(*packed.launch);
  if (packed.work)
    record["work"] = workRecord(*packed.work);
  if (!packed.flops.empty())
    record["flops"] = costRecord(packed.flops);
  if (!packed.bytes.empty())
    record["bytes"] = costRecord(packed.bytes);
  if (!packed.tiles.empty())
    record["tiles"] = costRecord(packed.tiles);
  return record;
}

json backwardRecord(const Backward &backward) {
  static const char *const kinds[] = {"gradient", "result", "argument", "needs", "deterministic"};
  json arguments = json::array();
  for (const BackwardArgument &argument : backward.arguments)
    arguments.push_back({kinds[argument.kind], argument.index});
  return {{"op", backward.op}, {"arguments", std::move(arguments)}};
}

json torchRecord(const TorchRules &rules) {
  json record = json::object();
  auto add = [](json &object, const char *key, const std::string &text) {
    if (!text.empty())
      object[key] = text;
  };
  add(record["autocast"], "cpu", rules.autocastCpu);
  add(record["autocast"], "cuda", rules.autocastCuda);
  if (record["autocast"].is_null())
    record.erase("autocast");
  add(record, "dimensions", rules.dimensions);
  add(record, "promotion", rules.promotion);
  add(record, "fallback", rules.fallback);
  return record;
}

json opRecord(const OpRecord &op, const PackedPlan *plan) {
  json arguments = json::array();
  for (const OpArgument &argument : op.arguments) {
    json record = {{"name", argument.name}, {"type", argument.type}, {"mut", argument.isMut}};
    if (argument.hasDefault)
      record["default"] = valueRecord(argument.defaultValue);
    arguments.push_back(std::move(record));
  }
  json record = {{"name", op.name},
                 {"doc", op.doc},
                 {"schema", op.schema},
                 {"arguments", std::move(arguments)},
                 {"results", op.results},
                 {"plan", planSectionName(op.name)},
                 {"shape_plan", shapePlanSectionName(op.name)},
                 {"reference", op.reference.empty() ? json() : json(op.reference)}};
  if (plan && !plan->gpuPlan.empty())
    record["gpu_plan"] = gpuPlanSectionName(op.name);
  if (plan && !plan->gpuShapePlan.empty())
    record["gpu_shape_plan"] = gpuShapePlanSectionName(op.name);
  if (op.backward)
    record["backward"] = backwardRecord(*op.backward);
  if (op.torch)
    record["torch"] = torchRecord(*op.torch);
  return record;
}

} // namespace

std::string hostSectionName(const std::string &target) { return "host/" + target; }
std::string planSectionName(const std::string &op) { return "plan/" + op; }
std::string shapePlanSectionName(const std::string &op) { return "shape-plan/" + op; }
std::string gpuPlanSectionName(const std::string &op) { return "gpu-plan/" + op; }
std::string gpuShapePlanSectionName(const std::string &op) { return "gpu-shape-plan/" + op; }

json makeManifest(const PackageContents &contents) {
  json kernels = json::array(), instances = json::array(), ops = json::array();
  std::set<size_t> compiled;
  for (const PackedInstance &instance : contents.instances)
    compiled.insert(instance.kernel);
  std::map<size_t, size_t> numbers; // omitted parameters have no entry
  for (size_t k = 0; k < contents.program->kernels().size(); ++k)
    if (const KernelRecord &kernel = contents.program->kernels()[k]; compiled.count(k) || kernel.isLaunched) {
      numbers.emplace(k, kernels.size());
      kernels.push_back(kernelRecord(kernel));
    }
  for (const PackedInstance &instance : contents.instances) {
    instances.push_back(instanceRecord(instance, *contents.program));
    instances.back()["kernel"] = numbers.at(instance.kernel);
  }
  for (const OpRecord &op : contents.program->ops()) {
    auto plan = std::find_if(contents.plans.begin(), contents.plans.end(),
                             [&](const PackedPlan &each) { return each.op == op.name; });
    ops.push_back(opRecord(op, plan == contents.plans.end() ? nullptr : &*plan));
  }
  return {{"producer", {{"kpkg", KPKG_VERSION}, {"llvm", LLVM_VERSION_STRING}, {"options", contents.options}}},
          {"kernels", std::move(kernels)},
          {"instances", std::move(instances)},
          {"ops", std::move(ops)}};
}

} // namespace kpkg::compiler
