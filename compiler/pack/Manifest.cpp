// Writes the manifest of a package from the results of a build.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/pack/Manifest.h"
#include "runtime/include/kpkg/kpkg.h"
#include "runtime/manifest/Write.h"
#include "llvm/Config/llvm-config.h"
#include <map>
#include <set>

namespace kpkg::compiler {

manifest::Value valueRecord(const Value &value) {
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
    std::vector<int64_t> items;
    for (const Value &item : value.asSequence().items)
      items.push_back(item.asInt());
    return items;
  }
  return std::monostate(); // None
}

namespace {

manifest::Kernel kernelRecord(const KernelRecord &kernel) {
  manifest::Kernel record;
  record.name = kernel.name;
  record.doc = kernel.doc;
  record.persistent = kernel.isPersistent;
  for (const KernelParameter &parameter : kernel.parameters) {
    bool isFunction = parameter.kind == "function"; // the runtime treats it as a name
    auto kind = isFunction ? manifest::ParamKind::String : *manifest::wordNamed<manifest::ParamKind>(parameter.kind);
    record.params.push_back({parameter.name, kind, isFunction, parameter.isTuned});
  }
  for (const KernelArgument &argument : kernel.arguments) {
    manifest::KernelArgument &entry = record.args.emplace_back();
    entry.name = argument.name;
    entry.kind = argument.isView ? manifest::ArgumentKind::View : manifest::ArgumentKind::Scalar;
    entry.dtype = argument.dtype;
    if (argument.isView) {
      entry.rank = argument.rank;
      entry.mut = argument.isMut;
    }
  }
  return record;
}

manifest::Op opRecord(const OpRecord &op, const PackedPlan *plan) {
  manifest::Op record;
  record.name = op.name;
  record.doc = op.doc;
  record.schema = op.schema;
  for (const OpArgument &argument : op.arguments) {
    manifest::OpArgument &entry = record.declared.emplace_back(argument.name, argument.type, argument.isMut);
    if (argument.hasDefault)
      entry.defaultRecord = valueRecord(argument.defaultValue);
  }
  record.results = op.results;
  record.plan = planSectionName(op.name);
  record.shapePlan = shapePlanSectionName(op.name);
  if (plan && !plan->gpuPlan.empty())
    record.gpuPlan = gpuPlanSectionName(op.name);
  if (plan && !plan->gpuShapePlan.empty())
    record.gpuShapePlan = gpuShapePlanSectionName(op.name);
  record.reference = op.reference;
  record.backward = op.backward;
  record.torch = op.torch;
  return record;
}

} // namespace

std::string hostSectionName(const std::string &target) { return "host/" + target; }
std::string planSectionName(const std::string &op) { return "plan/" + op; }
std::string shapePlanSectionName(const std::string &op) { return "shape-plan/" + op; }
std::string gpuPlanSectionName(const std::string &op) { return "gpu-plan/" + op; }
std::string gpuShapePlanSectionName(const std::string &op) { return "gpu-shape-plan/" + op; }

nlohmann::json makeManifest(const PackageContents &contents) {
  manifest::Manifest manifest;
  manifest.producer = {KPKG_VERSION, LLVM_VERSION_STRING, contents.options};
  std::set<size_t> compiled;
  for (const PackedInstance &instance : contents.instances)
    compiled.insert(instance.kernel);
  std::map<size_t, size_t> numbers; // omitted parameters have no entry
  for (size_t k = 0; k < contents.program->kernels().size(); ++k)
    if (const KernelRecord &kernel = contents.program->kernels()[k]; compiled.count(k) || kernel.isLaunched) {
      numbers.emplace(k, manifest.kernels.size());
      manifest.kernels.push_back(kernelRecord(kernel));
    }
  for (const PackedInstance &packed : contents.instances) {
    manifest::Instance &record = manifest.instances.emplace_back(packed);
    record.kernel = uint32_t(numbers.at(packed.kernel));
    for (const Value &value : packed.parameters)
      record.paramValues.push_back(valueRecord(value));
  }
  for (const OpRecord &op : contents.program->ops()) {
    auto plan = std::find_if(contents.plans.begin(), contents.plans.end(),
                             [&](const PackedPlan &each) { return each.op == op.name; });
    manifest.ops.push_back(opRecord(op, plan == contents.plans.end() ? nullptr : &*plan));
  }
  return manifest::writeManifest(std::move(manifest));
}

} // namespace kpkg::compiler
