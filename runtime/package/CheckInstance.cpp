// Checks a compiled instance of the manifest against its kernel: its assumptions, launch and cost.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/CheckInstance.h"
#include "runtime/manifest/Read.h"
#include "runtime/manifest/Write.h"
#include "runtime/package/TripCount.h"

#include <algorithm>

namespace kpkg::package {

using manifest::Refusal;

namespace {

constexpr int32_t maxTensorMapRank = 5;

/// An instance, its kernel and its place for messages.
struct Subject {
  const Instance &instance;
  const Kernel &kernel;
  std::string where;

  [[noreturn]] void refuse(const std::string &what) const { throw Refusal{where + " " + what}; }
  Subject at(const char *list, size_t index) const {
    return {instance, kernel, where + " " + list + "[" + std::to_string(index) + "]"};
  }
  /// Returns a view argument, or null.
  const KernelArgument *view(int64_t arg) const {
    return arg < int64_t(kernel.args.size()) && isView(kernel.args[size_t(arg)]) ? &kernel.args[size_t(arg)] : nullptr;
  }
};

ParamValue resolveParam(const manifest::Value &value, const KernelParam &declared, const Subject &subject) {
  ParamValue param;
  param.kind = declared.kind;
  param.isFunction = declared.isFunction;
  const auto *integer = std::get_if<int64_t>(&value);
  const auto *real = std::get_if<double>(&value);
  const auto *flag = std::get_if<bool>(&value);
  const auto *text = std::get_if<std::string>(&value);
  if (param.kind == ParamValue::Kind::Int && integer)
    param.integer = *integer;
  else if (param.kind == ParamValue::Kind::Bool && flag)
    param.integer = *flag;
  else if (param.kind == ParamValue::Kind::Float && (integer || real))
    param.real = real ? *real : double(*integer);
  else if (param.kind == ParamValue::Kind::DType && text && plan::dtypeFromName(*text) != plan::DType::None)
    param.integer = int64_t(plan::dtypeFromName(*text));
  else if (param.kind == ParamValue::Kind::String && text)
    param.text = *text;
  else
    subject.refuse("has a parameter of the wrong kind: " + manifest::toJson(value).dump());
  return param;
}

void checkCost(const std::vector<CostTerm> &terms, const char *key, const Subject &subject) {
  for (size_t i = 0; i < terms.size(); ++i)
    for (const CostFactor &factor : terms[i].factors) {
      if (factor.kind == CostFactor::Kind::Count) {
        if (std::string why = checkTripCount(factor.steps, subject.kernel); !why.empty())
          subject.at(key, i).refuse(why);
      } else if (factor.kind != CostFactor::Kind::Blocks) {
        const KernelArgument *view = subject.view(factor.argument);
        if (!view || factor.dimension >= uint32_t(view->rank))
          subject.at(key, i).refuse("has a factor of no view's dimension: " + manifest::toJson(factor).dump());
      }
    }
}

void checkFact(const Fact &fact, const Subject &subject) {
  const KernelArgument *view = subject.view(fact.arg);
  if (!view)
    subject.refuse("names an argument that is no view");
  for (auto [key, value, end] : {std::tuple("unit", fact.unit, view->rank), {"outer", fact.outer, view->rank + 1}})
    if (value >= end)
      subject.refuse(std::string("has `") + key + "` " + std::to_string(value) + " for a view of rank " +
                     std::to_string(view->rank));
  if (fact.divisible > 1 && fact.unit < 0)
    subject.refuse("states a divisor without a unit dimension");
}

/// Checks how a window traverses `extents` extents.
void checkWindow(const manifest::Window &window, size_t extents, const Subject &subject) {
  auto checkSize = [&](const char *key, size_t size) {
    if (size != extents)
      subject.refuse(std::string("has a window whose `") + key +
                     "` are not as many as extents: " + std::to_string(extents));
  };
  for (auto [key, list] : {std::pair("counts", &window.counts),
                           {"strides", &window.strides},
                           {"starts", &window.starts},
                           {"steps", &window.steps}}) {
    checkSize(key, list->size());
    for (int32_t arg : *list) {
      if (size_t(arg) >= subject.kernel.args.size())
        subject.refuse("has a window that names no argument");
      if (isView(subject.kernel.args[size_t(arg)]) || subject.instance.dtypes[size_t(arg)] != plan::DType::Int64)
        subject.refuse(std::string("has a window with an argument in `") + key + "` that is no Int");
    }
  }
  checkSize("taps", window.taps.size());
  for (auto [arg, dimension] : window.taps) {
    const KernelArgument *view = subject.view(arg);
    if (!view)
      subject.refuse("has a window whose `taps` are not those of a view");
    if (dimension >= view->rank)
      subject.refuse("has a window that names no dimension");
  }
}

/// Refuses tensor maps that the driver would only refuse at launch.
void checkTensorMap(const TensorMap &map, const Subject &subject) {
  const KernelArgument *view = subject.view(map.arg);
  if (!view || view->rank < 1 || view->rank > maxTensorMapRank)
    subject.refuse("names an argument that is no view of 1 to 5 dimensions");
  plan::DType dtype = subject.instance.dtypes[size_t(map.arg)];
  if (dtype == plan::DType::None || dtype == plan::DType::Bool)
    subject.refuse("names an argument of a dtype that has no tensor maps");
  int64_t bytes = plan::dtypeBytes(dtype);
  if (map.unit >= view->rank)
    subject.refuse("has `unit` " + std::to_string(map.unit) + " for a view of rank " + std::to_string(view->rank));
  if (map.swizzle != 0 && map.swizzle != 32 && map.swizzle != 64 && map.swizzle != 128)
    subject.refuse("has a swizzle that is not 0, 32, 64 or 128");
  if (map.box.size() != size_t(view->rank))
    subject.refuse("has a box of " + std::to_string(map.box.size()) + " dimensions for a view of " +
                   std::to_string(view->rank));
  if (map.window) {
    if (view->rank < 3 || map.unit != view->rank - 1)
      subject.refuse("has a window over a view that is not of images with channels last");
    if (std::any_of(map.box.begin() + 1, map.box.end() - 1, [](uint32_t extent) { return extent != 1; }))
      subject.refuse("has a window and a box that is not of pixels and channels only");
    checkWindow(*map.window, size_t(view->rank) - 2, subject);
  }
  int64_t row = map.box[size_t(map.unit)] * bytes;
  if (row % 16 != 0 || (map.swizzle != 0 && row > map.swizzle))
    subject.refuse("has a box whose rows of " + std::to_string(row) +
                   " bytes are no multiple of 16 or more than is swizzled");
  // Properties that the facts guarantee need no check in each call.
  bool isProven = std::ranges::any_of(subject.instance.facts, [&](const Fact &fact) {
    return fact.arg == map.arg && fact.unit == map.unit && fact.align % 16 == 0 &&
           (view->rank == 1 || fact.divisible * bytes % 16 == 0);
  });
  if (!isProven)
    subject.refuse("needs facts that make the address and the strides of '" + view->name + "' multiples of 16 bytes");
}

void resolveDTypes(Instance &instance, const Subject &subject) {
  const Kernel &kernel = subject.kernel;
  const std::vector<std::string> &names = instance.dtypeNames;
  if (!names.empty() && names.size() != kernel.args.size())
    subject.refuse("has " + std::to_string(names.size()) + " dtypes, its kernel " + std::to_string(kernel.args.size()) +
                   " arguments");
  for (size_t i = 0; i < kernel.args.size(); ++i) {
    auto [dtype, param] = kernel.argumentTypes[i];
    if (param >= 0)
      dtype = plan::DType(instance.params[size_t(param)].integer);
    if (!names.empty() && dtype == plan::DType::None) {
      dtype = plan::dtypeFromName(names[i]);
      if (dtype == plan::DType::None)
        subject.refuse("has the unknown dtype '" + names[i] + "'");
    }
    if (!isView(kernel.args[i]) && dtype == plan::DType::None)
      subject.refuse("does not say the dtype of scalar '" + kernel.args[i].name + "'");
    instance.dtypes.push_back(dtype);
  }
}

void checkLaunch(const manifest::Launch &launch, const Subject &subject) {
  if (launch.blocks > launch.threads)
    subject.refuse("has a launch of " + std::to_string(launch.blocks) + " blocks with " +
                   std::to_string(launch.threads) + " threads");
  for (size_t i = 0; i < launch.tensorMaps.size(); ++i)
    checkTensorMap(launch.tensorMaps[i], subject.at("launch tensor_maps", i));
}

} // namespace

Instance resolveInstance(manifest::Instance record, size_t index, const Tables &tables) {
  std::string where = "instances[" + std::to_string(index) + "]";
  if (record.kernel >= tables.kernels.size())
    throw Refusal{where + ".kernel is " + std::to_string(record.kernel) + ", but there are " +
                  std::to_string(tables.kernels.size()) + " kernels"};
  const Kernel &kernel = tables.kernels[record.kernel];
  Instance instance{std::move(record), {}, {}, {}};
  Subject subject{instance, kernel, where + " (" + kernel.name + ")"};
  if (instance.paramValues.size() != kernel.params.size())
    subject.refuse("has " + std::to_string(instance.paramValues.size()) + " params, its kernel " +
                   std::to_string(kernel.params.size()));
  for (size_t i = 0; i < kernel.params.size(); ++i)
    instance.params.push_back(resolveParam(instance.paramValues[i], kernel.params[i], subject));
  resolveDTypes(instance, subject);
  instance.paramValues = {};
  instance.dtypeNames = {};
  for (size_t i = 0; i < instance.facts.size(); ++i)
    checkFact(instance.facts[i], subject.at("facts", i));
  if (instance.launch)
    checkLaunch(*instance.launch, subject);
  checkCost(instance.flops, "flops", subject);
  checkCost(instance.bytes, "bytes", subject);
  checkCost(instance.tiles, "tiles", subject);
  if (instance.work) {
    checkCost(instance.work->flops, "work flops", subject);
    if (instance.work->flopsPerCycleAlone == 0)
      instance.work->flopsPerCycleAlone = instance.work->flopsPerCycle;
    if (kernel.persistent && instance.tiles.empty())
      subject.refuse("has `work`, but does not say how many tiles there are");
  }
  instance.label = kernel.name + "[";
  for (size_t i = 0; i < instance.params.size(); ++i)
    instance.label += (i ? ", " : "") + kernel.params[i].name + "=" + instance.params[i].str();
  instance.label += "]" + (instance.variant.empty() ? "" : " " + instance.variant) + " " + instance.target;
  return instance;
}

} // namespace kpkg::package
