// Chooses the instance of a kernel that runs a launch, and explains why the others do not.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Choice.h"
#include "runtime/package/Environment.h"
#include "runtime/package/Windows.h"

#include <algorithm>
#include <compare>
#include <optional>

namespace kpkg::package {

using plan::LaunchArg;
using plan::LaunchParam;
using plan::LaunchStep;

static ParamValue valueOf(const LaunchParam &param) {
  ParamValue value;
  switch (param.kind) {
  case LaunchParam::Kind::Int:
    value.kind = ParamValue::Kind::Int, value.integer = param.integer;
    break;
  case LaunchParam::Kind::Bool:
    value.kind = ParamValue::Kind::Bool, value.integer = param.integer;
    break;
  case LaunchParam::Kind::Float:
    value.kind = ParamValue::Kind::Float, value.real = param.real;
    break;
  case LaunchParam::Kind::DType:
    value.kind = ParamValue::Kind::DType, value.integer = param.integer;
    break;
  case LaunchParam::Kind::String:
    value.kind = ParamValue::Kind::String, value.text = param.string;
    break;
  }
  return value;
}

static bool meets(const ParamValue &listed, const LaunchParam &wanted, const ParamValue &value) {
  return wanted.atLeast ? listed.kind == ParamValue::Kind::Int && listed.integer >= value.integer : listed == value;
}

namespace {
struct WantedParam {
  size_t index; ///< index in Kernel::params
  const LaunchParam *param;
  ParamValue value;
  uint64_t accepted = 0; ///< bits by the numbers of Kernel::values, if there are some

  /// Returns whether the kernel's instance `number` has an accepted value.
  bool isMetBy(const Tables &tables, const Kernel &kernel, size_t number) const {
    if (kernel.values[index].empty())
      return meets(tables.instances[kernel.instances[number]].params[index], *param, value);
    return accepted >> kernel.valueNumbers[number * kernel.params.size() + index] & 1;
  }
};
} // namespace

static std::string unmetText(const WantedParam &want, const Instance &instance) {
  return "has " + std::string(want.param->name) + "=" + instance.params[want.index].str() + ", wanted " +
         (want.param->atLeast ? "at least " : "") + want.value.str();
}

/// Lists the values of one parameter over some instances, without repetition: "float32, bfloat16".
static std::string listValues(const Tables &tables, const std::vector<uint32_t> &instances, size_t param) {
  std::vector<std::string> seen;
  for (uint32_t index : instances) {
    std::string value = tables.instances[index].params[param].str();
    if (std::find(seen.begin(), seen.end(), value) == seen.end())
      seen.push_back(std::move(value));
  }
  std::string text;
  for (size_t i = 0; i < seen.size() && i < 16; ++i)
    text += (i ? ", " : "") + seen[i];
  return seen.size() > 16 ? text + ", ..." : text;
}

/// Returns a hint if the build was asked to leave out dtypes, else nothing. Options of merged packages end with `;`.
static std::string leftOutDTypes(const Tables &tables) {
  std::string_view options = tables.buildOptions, name = "--dtypes=";
  size_t at = options.find(name);
  if (at == options.npos)
    return {};
  return "; the package was built with " + std::string(options.substr(at, options.find_first_of(" ;", at) - at)) +
         ", which leaves out other dtypes of the same kind";
}

/// Explains why the parameters of no instance fit, by the first parameter that excludes all remaining instances.
static Error noParams(const Tables &tables, const Kernel &kernel, const std::vector<WantedParam> &wanted,
                      const std::string &op, std::string_view target) {
  std::vector<uint32_t> left = kernel.instances;
  std::string why = op + ": kernel " + kernel.name + " has no instance";
  if (left.empty() && !target.empty())
    why += " for " + std::string(target) + "; building with --target " + std::string(target) + " says why";
  else if (left.empty())
    why += leftOutDTypes(tables);
  for (const WantedParam &want : wanted) {
    std::vector<uint32_t> fitting;
    for (uint32_t index : left)
      if (meets(tables.instances[index].params[want.index], *want.param, want.value))
        fitting.push_back(index);
    if (fitting.empty() && !left.empty()) {
      std::string listed = listValues(tables, left, want.index);
      if (want.value.kind == ParamValue::Kind::DType)
        why = "dtype " + want.value.str() + " is not supported by " + op + " (" + listed + ")" + leftOutDTypes(tables);
      else if (want.param->atLeast)
        why = std::string(want.param->name) + " = " + want.value.str() + " is more than " + op + " supports (" +
              listed + ")";
      else
        why = std::string(want.param->name) + " = " + want.value.str() + " is not supported by " + op + " (" + listed +
              ")";
      break;
    }
    left = std::move(fitting);
  }
  return {KPKG_ERROR_NO_INSTANCE, why, op, kernel.name, {}};
}

/// Returns the first requirement of the fact that the view does not meet; empty if the fact holds.
/// Strides of dimensions with one element count as well if `isStrict` is set.
static std::string lacking(const Fact &fact, const plan::View &view, std::span<const int64_t> alignments,
                           bool isStrict) {
  auto counts = [&](int32_t d) { return isStrict || view.shape[size_t(d)] > 1; };
  for (int32_t d = 0; d < view.rank; ++d)
    if (view.shape[size_t(d)] == 0)
      return {}; // nothing is accessed
  if (fact.unit >= 0 && view.strides[size_t(fact.unit)] != 1 && counts(fact.unit))
    return "stride 1 in dimension " + std::to_string(fact.unit) + ", found " +
           std::to_string(view.strides[size_t(fact.unit)]);
  if (fact.align > 1) {
    int64_t offset = plan::dtypeBytes(view.dtype, view.offset), base = alignments[size_t(view.buffer)];
    int64_t alignment = offset == 0 ? base : std::min(base, offset & -offset);
    if (alignment < fact.align)
      return "an address that is a multiple of " + std::to_string(fact.align) + " bytes, found one of " +
             std::to_string(alignment);
  }
  int64_t lowest = 0, highest = 0;
  for (int32_t d = 0; d < view.rank; ++d) {
    int64_t extent = view.shape[size_t(d)], stride = view.strides[size_t(d)];
    if (fact.divisible > 1 && d == fact.unit && extent % fact.divisible != 0)
      return "an extent of dimension " + std::to_string(d) + " that is a multiple of " +
             std::to_string(fact.divisible) + ", found " + std::to_string(extent);
    if (fact.divisible > 1 && d != fact.unit && counts(d) && stride % fact.divisible != 0)
      return "a stride of dimension " + std::to_string(d) + " that is a multiple of " + std::to_string(fact.divisible) +
             ", found " + std::to_string(stride);
    if (d >= fact.outer)
      (stride < 0 ? lowest : highest) += (extent - 1) * stride;
    highest = std::max(highest, extent);
  }
  if (fact.index == 32 && (highest > INT32_MAX || lowest < INT32_MIN))
    return "offsets of 32 bits, found up to " + std::to_string(std::max(highest, -lowest));
  return {};
}

/// Returns why the device cannot create a tensor map of the view, beyond the facts; empty if it can.
static std::string unmappable(const plan::View &view, int32_t unit, const device::TensorMapLimits &limits) {
  for (int32_t d = 0; d < view.rank; ++d) {
    int64_t extent = view.shape[size_t(d)], stride = view.strides[size_t(d)];
    if (extent == 0)
      return "an element, found none";
    if (uint64_t(extent) >= limits.extentEnd)
      return "extents of at most " + std::to_string(limits.extentEnd - 1) + ", found " + std::to_string(extent);
    // Non-negative, by the conversion. An element has at most eight bytes.
    if (d != unit && extent > 1 && uint64_t(stride) >= limits.strideEnd / 8)
      return "a stride of dimension " + std::to_string(d) + " from 0 to " + std::to_string(limits.strideEnd / 8 - 1) +
             ", found " + std::to_string(stride);
  }
  return {};
}

/// Returns the first broken fact or tensor map; empty if all hold.
static std::string brokenFact(const Kernel &kernel, const Instance &instance, const ChoiceQuery &query) {
  const plan::LaunchStep &launch = query.launch;
  for (const Fact &fact : instance.facts) {
    const LaunchArg &arg = launch.args[size_t(fact.arg)];
    if (arg.kind != LaunchArg::Kind::View || arg.view.buffer < 0)
      continue;
    if (std::string what = lacking(fact, arg.view, query.alignments, query.invariance == BatchInvariance::ByOp);
        !what.empty())
      return "needs for '" + kernel.args[size_t(fact.arg)].name + "' " + what;
  }
  if (!instance.launch || instance.launch->tensorMaps.empty())
    return {};
  const device::TensorMapLimits *limits = query.device.tensorMaps();
  if (!limits)
    return "needs tensor maps, which this device does not have";
  for (const TensorMap &map : instance.launch->tensorMaps) {
    const LaunchArg &arg = launch.args[size_t(map.arg)];
    if (arg.view.buffer < 0 && instance.dtypes[size_t(map.arg)] == plan::DType::None)
      return "needs '" + kernel.args[size_t(map.arg)].name + "', since the package does not tell its dtype";
    if (arg.view.buffer < 0)
      continue;
    std::string what = unmappable(arg.view, map.unit, *limits);
    if (what.empty())
      what = unmappableWindow(map, launch, *limits);
    if (!what.empty())
      return "needs for '" + kernel.args[size_t(map.arg)].name + "' " + what;
  }
  return {};
}

/// Returns a measure of how specialised an instance is.
static size_t strength(const Instance &instance) {
  size_t count = 0;
  for (const Fact &fact : instance.facts)
    count += (fact.unit >= 0) + (fact.align > 1) + (fact.divisible > 1) + (fact.index == 32);
  return count;
}

static std::string missingFlag(const Instance &instance, const ChoiceQuery &query) {
  auto lacks = [&](const std::string &flag) {
    bool isChecked = flag != batchInvariant || query.invariance == BatchInvariance::ByInstances;
    return isChecked && std::find(instance.flags.begin(), instance.flags.end(), flag) == instance.flags.end();
  };
  auto why = [&](const std::string &flag, const char *who) {
    std::string text = "is not " + flag + ", which " + who + " asks for";
    if (flag == batchInvariant)
      text += ": " + query.op + " has no argument 'batch_invariant'";
    return text;
  };
  for (const std::string &flag : environment().require)
    if (lacks(flag))
      return why(flag, "KPKG_REQUIRE");
  if (query.restriction)
    for (const std::string &flag : query.restriction->require)
      if (lacks(flag))
        return why(flag, "the configuration");
  return {};
}

/// Returns why the instance cannot be used, apart from its parameters, target and arguments; empty if it can.
static std::string unsuitable(const Kernel &kernel, const Instance &instance, const ChoiceQuery &query) {
  std::string reason = missingFlag(instance, query);
  if (reason.empty() && query.restriction)
    reason = query.restriction->refuse(kernel, instance);
  if (reason.empty() && query.refusals)
    if (std::string refusal = query.refusals->find(instance, query.device); !refusal.empty())
      reason = "is refused by the device: " + refusal;
  return reason.empty() ? brokenFact(kernel, instance, query) : reason;
}

/// Checks the launch's arguments against the kernel and the instance. A plan that does not fit its kernels must not
/// reach them.
static std::optional<Error> checkArguments(const Kernel &kernel, const Instance &instance, const LaunchStep &launch,
                                           const std::string &op) {
  auto refuse = [&](const std::string &argument, const std::string &what) {
    return Error{KPKG_ERROR_KERNEL, op + ": kernel " + kernel.name + ": " + what, op, instance.label, argument};
  };
  if (launch.args.size() != kernel.args.size())
    return refuse("", "the plan passes " + std::to_string(launch.args.size()) + " arguments, it takes " +
                          std::to_string(kernel.args.size()));
  if (launch.persistent != kernel.persistent)
    return refuse("", launch.persistent ? "the plan gives no grid" : "the plan gives a grid to a persistent kernel");
  for (size_t i = 0; i < kernel.args.size(); ++i) {
    const KernelArgument &expected = kernel.args[i];
    const LaunchArg &given = launch.args[i];
    if (isView(expected) != (given.kind == LaunchArg::Kind::View))
      return refuse(expected.name,
                    "'" + expected.name + "' is " +
                        (isView(expected) ? "a scalar, expected a tensor" : "a tensor, expected a scalar"));
    if (!isView(expected) || given.view.buffer < 0)
      continue;
    plan::DType dtype = instance.dtypes[i];
    if (given.view.rank != expected.rank)
      return refuse(expected.name, "'" + expected.name + "' has rank " + std::to_string(given.view.rank) +
                                       ", expected " + std::to_string(expected.rank));
    if (dtype != plan::DType::None && given.view.dtype != dtype)
      return refuse(expected.name, "'" + expected.name + "' is " + std::string(plan::dtypeName(given.view.dtype)) +
                                       ", expected " + std::string(plan::dtypeName(dtype)));
  }
  return std::nullopt;
}

/// Returns whether the instances differ only in tuned parameters that the launch does not give.
static bool areAlternatives(const Kernel &kernel, const std::vector<WantedParam> &wanted, const Instance &a,
                            const Instance &b) {
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    bool isFree = kernel.params[i].isTuned &&
                  std::ranges::none_of(wanted, [&](const WantedParam &want) { return want.index == i; });
    if (!isFree && !(a.params[i] == b.params[i]))
      return false;
  }
  return a.target == b.target && a.variant == b.variant;
}

/// Reads the launch's parameters. Fails if the kernel lacks one of them.
static Result<std::vector<WantedParam>> wantedParams(const Kernel &kernel, const LaunchStep &launch,
                                                     const std::string &op) {
  std::vector<WantedParam> wanted;
  wanted.reserve(launch.params.size());
  for (const LaunchParam &param : launch.params) {
    int index = kernel.paramIndex(param.name);
    if (index < 0)
      return Error{KPKG_ERROR_FORMAT,
                   op + ": its plan gives kernel " + kernel.name + " the parameter '" + std::string(param.name) +
                       "', which it does not have",
                   op,
                   {},
                   {}};
    wanted.push_back({size_t(index), &param, valueOf(param)});
    WantedParam &want = wanted.back();
    want.value.isFunction = kernel.params[want.index].isFunction;
    const std::vector<ParamValue> &values = kernel.values[want.index];
    for (size_t i = 0; i < values.size(); ++i)
      want.accepted |= uint64_t(meets(values[i], param, want.value)) << i;
  }
  return wanted;
}

namespace {
/// The best instance so far: of smaller sizes, then of the better target, then with more facts, then the first of the
/// manifest.
class BestInstance {
public:
  explicit BestInstance(const std::vector<WantedParam> &wanted) : wanted(wanted) {}

  const Instance *get() const { return instance; }
  /// Returns whether a candidate of this target rank is certainly worse, so that it is no alternative either.
  bool beats(const Instance &candidate, size_t candidateRank) const {
    return instance && order(candidate, candidateRank) == std::strong_ordering::greater;
  }
  void offer(const Instance &candidate, size_t candidateRank) {
    if (instance) {
      auto found = order(candidate, candidateRank);
      bool isBetter = found == std::strong_ordering::equal ? strength(candidate) > strength(*instance)
                                                           : found == std::strong_ordering::less;
      if (!isBetter)
        return;
    }
    instance = &candidate;
    rank = candidateRank;
  }

private:
  std::strong_ordering order(const Instance &candidate, size_t candidateRank) const {
    for (const WantedParam &want : wanted)
      if (want.param->atLeast && candidate.params[want.index].integer != instance->params[want.index].integer)
        return candidate.params[want.index].integer <=> instance->params[want.index].integer;
    return candidateRank <=> rank;
  }

  const std::vector<WantedParam> &wanted;
  const Instance *instance = nullptr;
  size_t rank = 0;
};
} // namespace

/// Returns the preferred one of the suitable instances that are alternatives of the best.
static const Instance *preferredAlternative(std::vector<const Instance *> suitable, const Instance *best,
                                            const Kernel &kernel, const std::vector<WantedParam> &wanted,
                                            const ChoiceQuery &query, ChoiceReport *report) {
  std::erase_if(suitable, [&](const Instance *instance) { return !areAlternatives(kernel, wanted, *instance, *best); });
  if (suitable.size() < 2)
    return best;
  AlternativeChoice choice = query.invariance == BatchInvariance::ByOp
                                 ? firstAlternative(std::move(suitable), query.device)
                                 : chooseAlternative(query.tables, std::move(suitable), query.launch, query.device);
  best = choice.instances[choice.chosen];
  if (report)
    report->alternatives = std::move(choice);
  return best;
}

Result<const Instance *> chooseInstance(const ChoiceQuery &query, ChoiceReport *report) {
  const auto &[tables, launch, op, device, alignments, restriction, invariance, refusals, target] = query;
  auto found = tables.kernelByName.find(launch.kernel);
  if (found == tables.kernelByName.end())
    return Error{KPKG_ERROR_FORMAT,
                 op + ": its plan launches kernel '" + std::string(launch.kernel) +
                     "', which the package does not have",
                 op,
                 {},
                 {}};
  const Kernel &kernel = tables.kernels[found->second];
  auto params = wantedParams(kernel, launch, op);
  if (!params)
    return params.error();
  const std::vector<WantedParam> &wanted = *params;

  BestInstance best(wanted);
  std::vector<const Instance *> suitable;
  bool paramsFit = false;
  bool closestIsForeign = false;
  std::string closest;
  for (size_t number = 0; number < kernel.instances.size(); ++number) {
    // This rejects most instances, so it reads nothing of them, and creates texts only for a report.
    const Instance &instance = tables.instances[kernel.instances[number]];
    auto unmet =
        std::ranges::find_if(wanted, [&](const WantedParam &want) { return !want.isMetBy(tables, kernel, number); });
    if (unmet != wanted.end()) {
      if (report)
        report->verdicts.push_back({&instance, unmetText(*unmet, instance)});
      continue;
    }
    paramsFit = true;
    auto rank = target.empty()              ? device.targetRank(instance.target)
                : target == instance.target ? std::optional<size_t>(0)
                                            : std::nullopt;
    if (!report && rank && best.beats(instance, *rank))
      continue;
    std::string reason;
    if (!rank)
      reason = "is for " + instance.target + ", " +
               (target.empty() ? device.runnableText() : "the call is for " + std::string(target));
    else if (auto error = checkArguments(kernel, instance, launch, op)) {
      // Instances with fitting parameters agree on the arguments' types.
      if (!report)
        return *error;
      reason = error->message;
    } else {
      reason = unsuitable(kernel, instance, query);
    }
    // An instance for this CPU is closer than one for another CPU.
    if (!reason.empty() && (closest.empty() || (rank && closestIsForeign))) {
      closest = instance.label + " " + reason;
      closestIsForeign = !rank;
    }
    if (report)
      report->verdicts.push_back({&instance, reason});
    if (!reason.empty())
      continue;
    suitable.push_back(&instance);
    best.offer(instance, *rank);
  }
  const Instance *chosen = best.get();
  if (chosen && kernel.hasAlternatives())
    chosen = preferredAlternative(std::move(suitable), chosen, kernel, wanted, query, report);
  if (report)
    for (Verdict &verdict : report->verdicts)
      if (verdict.reason.empty() && verdict.instance != chosen)
        verdict.reason = "would do; " + chosen->label + " is preferred";
  if (chosen)
    return chosen;
  if (!paramsFit)
    return noParams(tables, kernel, wanted, op, target);
  return Error{KPKG_ERROR_NO_INSTANCE,
               op + ": no instance of kernel " + kernel.name + " can run: " + closest,
               op,
               kernel.name,
               {}};
}

} // namespace kpkg::package
