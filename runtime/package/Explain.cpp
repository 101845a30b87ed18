// Explains how a call is resolved, as text or JSON: every instance with its verdict. Also reports an op's counters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/manifest/Describe.h"
#include "runtime/manifest/Write.h"
#include "runtime/package/CallableOp.h"
#include "runtime/package/Choice.h"
#include "runtime/package/Environment.h"
#include "runtime/package/Library.h"
#include "runtime/package/Tuning.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace kpkg::package {

using nlohmann::ordered_json;

/// 2.15e9 -> "2.15 G"
static std::string withPrefix(double value) {
  const char *prefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t step = 0;
  for (; value >= 1000 && step + 1 < std::size(prefixes); ++step)
    value /= 1000;
  char text[40];
  std::snprintf(text, sizeof text,
                value >= 100 || step == 0 ? "%.0f %s"
                : value >= 10             ? "%.1f %s"
                                          : "%.2f %s",
                value, prefixes[step]);
  return text;
}

/// Describes the GPU code of the instance and its resources.
static ordered_json describeCode(const Instance &instance, const Library &library) {
  ordered_json code = {{"section", instance.section}, {"bytes", library.sectionBytes(instance.section)}};
  code.update(manifest::figures(*instance.launch));
  code["dynamic"] = instance.launch->counters != 0;
  std::string text;
  for (const std::string &part : manifest::describe(*instance.launch))
    text += (text.empty() ? "" : ", ") + part;
  code["text"] =
      text + "; " + withPrefix(double(library.sectionBytes(instance.section))) + "B in '" + instance.section + "'";
  return code;
}

/// Describes the alternatives with their tuned values, the choice, and the row of the tuning table that would decide.
static ordered_json describeAlternatives(const AlternativeChoice &choice, const plan::LaunchStep &launch,
                                         const Tables &tables) {
  static const char *const means[] = {"table", "neighbour", "model", "order", "batch_invariant"};
  const Kernel &kernel = tables.kernels[choice.instances.front()->kernel];
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < choice.instances.size(); ++i) {
    const Instance &instance = *choice.instances[i];
    ordered_json values = ordered_json::object();
    for (size_t p = 0; p < kernel.params.size(); ++p)
      if (kernel.params[p].isTuned)
        values[kernel.params[p].name] = toJson(instance.params[p]);
    ordered_json record = {{"instance", instance.label}, {"values", std::move(values)}};
    if (!choice.estimates.empty()) {
      record["rounds"] = choice.estimates[i].rounds;
      record["cycles"] = choice.estimates[i].cycles();
    }
    list.push_back(std::move(record));
  }
  return {{"chosen_by", means[size_t(choice.by)]},
          {"row", tuningKey(kernel, *choice.instances.front(), launch, choice.device)},
          {"alternatives", std::move(list)}};
}

static std::string verdictText(const Verdict &verdict, const std::optional<AlternativeChoice> &choice) {
  if (choice)
    for (size_t i = 0; i < choice->instances.size(); ++i)
      if (choice->instances[i] == verdict.instance)
        return verdictOn(*choice, i);
  return verdict.reason.empty() ? "chosen" : verdict.reason;
}

/// Chooses like a call. Loads the chosen code, because only the device knows whether it accepts it.
static Result<const Instance *> chooseAccepted(const ChoiceQuery &query, const Library &library, device::Device &device,
                                               device::Stream stream, ChoiceReport &report) {
  while (true) {
    report = {};
    auto chosen = chooseInstance(query, &report);
    // Other errors than refusals are those of a call, not of the choice.
    if (!chosen || library.kernel(**chosen, device, stream) || library.refusals().find(**chosen, device).empty())
      return chosen;
  }
}

static ordered_json explainLaunch(const plan::LaunchStep &launch, const PackagedOp &op, device::Device &device,
                                  std::span<const int64_t> alignments, const Frame &frame) {
  ChoiceReport report;
  const Tables &tables = op.library().tables();
  ChoiceQuery query = {tables,           launch,
                       op.entry().name,  device,
                       alignments,       frame.restriction,
                       frame.invariance, &op.library().refusals()};
  auto chosen = chooseAccepted(query, op.library(), device, frame.stream, report);
  ordered_json record;
  record["kernel"] = std::string(launch.kernel);
  if (launch.persistent)
    record["grid"] = nullptr;
  else
    record["grid"] = {launch.grid[0], launch.grid[1], launch.grid[2]};
  record["chosen"] = nullptr;
  if (chosen) {
    Cost cost = estimateCost(**chosen, launch);
    record["chosen"] = (*chosen)->label;
    record["flops"] = cost.flops;
    record["bytes"] = cost.bytes;
    if ((*chosen)->launch)
      record["code"] = describeCode(**chosen, op.library());
  } else
    record["error"] = chosen.error().message;
  if (report.alternatives)
    record["choice"] = describeAlternatives(*report.alternatives, launch, tables);
  ordered_json instances = ordered_json::array();
  for (const Verdict &verdict : report.verdicts)
    instances.push_back({{"instance", verdict.instance->label},
                         {"accepted", verdict.reason.empty()},
                         {"reason", verdictText(verdict, report.alternatives)}});
  record["instances"] = std::move(instances);
  return record;
}

static ordered_json explainPackage(const PackagedOp &op, const Frame &frame) {
  ordered_json record;
  record["package"] = op.library().name();
  auto program = op.program(frame.plans());
  Result<int64_t> processors = program ? processorsFor(**program, frame) : program.error();
  plan::Resolution resolution;
  std::optional<Error> error;
  if (!processors)
    error = processors.error();
  else if (auto refused = plan::evaluate(**program, frame.arguments, resolution, *processors))
    error = toError(*refused, op.entry());
  if (error) {
    record["runs"] = false;
    record["error"] = error->message;
    return record;
  }
  auto device = findDevice(frame.device);
  if (!device) {
    record["runs"] = false;
    record["error"] = device.error().message;
    return record;
  }
  std::vector<int64_t> alignments = alignmentsOf(resolution, frame);
  bool runs = true;
  double flops = 0, bytes = 0;
  uint64_t copies = 0, copiedBytes = 0;
  ordered_json launches = ordered_json::array();
  for (const plan::Step &step : resolution.steps) {
    if (const auto *copy = std::get_if<plan::CopyStep>(&step)) {
      ++copies;
      copiedBytes += uint64_t(plan::dtypeBytes(copy->source.dtype, copy->source.numel()));
      continue;
    }
    launches.push_back(explainLaunch(std::get<plan::LaunchStep>(step), op, **device, alignments, frame));
    runs &= !launches.back()["chosen"].is_null();
    flops += launches.back().value("flops", 0.0);
    bytes += launches.back().value("bytes", 0.0);
  }
  record["runs"] = runs;
  record["flops"] = flops;
  record["bytes"] = bytes;
  record["copies"] = copies;
  record["copied_bytes"] = copiedBytes;
  record["steps"] = plan::describe(**program, resolution);
  record["launches"] = std::move(launches);
  return record;
}

/// Returns who ensures batch invariance; null if nobody asks for it.
static ordered_json batchInvarianceText(BatchInvariance invariance) {
  switch (invariance) {
  case BatchInvariance::NotWanted:
    return nullptr;
  case BatchInvariance::ByInstances:
    return "by each instance";
  case BatchInvariance::ByOp:
    return "by the op";
  }
  return nullptr;
}

static std::string conclusion(const CallableOp &op, const std::string &refusal, const ordered_json &packages) {
  if (refusal.empty())
    for (const ordered_json &package : packages)
      if (package["runs"].get<bool>())
        return "runs kernels of '" + package["package"].get<std::string>() + "'";
  if (!op.isPackaged())
    return op.effectivePolicy() == KPKG_POLICY_STRICT ? "fails: no package has it and the policy is strict"
                                                      : "runs the fallback: no package has it";
  bool mayFallBack = op.effectivePolicy() != KPKG_POLICY_STRICT;
  auto references = op.references();
  if (op.hasFallback())
    return mayFallBack ? "runs the fallback" : "fails: no instance can run it and the policy is strict";
  if (references.empty())
    return "fails: no instance can run it and there is no fallback";
  if (!mayFallBack)
    return "fails: no instance can run it, and its reference does not run under the policy strict";
  return "runs the reference '" + references.front()->entry().name + "', which is slow, if that can";
}

static std::string toText(const ordered_json &record) {
  auto string = [](const ordered_json &value) { return value.get<std::string>(); };
  std::string text = string(record["op"]) + ": " + string(record["result"]) + "\n";
  if (!record["batch_invariant"].is_null())
    text += "  batch invariance is ensured " + string(record["batch_invariant"]) + "\n";
  if (record.contains("refused"))
    text += "  every package is passed over: " + string(record["refused"]) + "\n";
  for (const ordered_json &package : record["packages"]) {
    text += "package '" + string(package["package"]) + "'\n";
    if (package.contains("error")) {
      text += "  refused: " + string(package["error"]) + "\n";
      continue;
    }
    std::string steps = string(package["steps"]);
    for (size_t at = 0; at < steps.size();) {
      size_t end = std::min(steps.find('\n', at), steps.size());
      text += "  " + steps.substr(at, end - at) + "\n";
      at = end + 1;
    }
    if (package["copies"] != 0)
      text += "  " + std::to_string(package["copies"].get<uint64_t>()) + " copies, " +
              withPrefix(double(package["copied_bytes"].get<uint64_t>())) + "B\n";
    for (const ordered_json &launch : package["launches"]) {
      text += "  kernel " + string(launch["kernel"]) + "\n";
      if (launch["chosen"].is_null())
        text += "    " + string(launch["error"]) + "\n";
      else if (launch["flops"] != 0.0 || launch["bytes"] != 0.0)
        text += "    about " + withPrefix(launch["flops"].get<double>()) + "FLOP, " +
                withPrefix(launch["bytes"].get<double>()) + "B\n";
      if (launch.contains("code"))
        text += "    " + string(launch["code"]["text"]) + "\n";
      for (const ordered_json &instance : launch["instances"])
        text += std::string("    ") + (instance["accepted"].get<bool>() ? "+ " : "- ") + string(instance["instance"]) +
                ": " + string(instance["reason"]) + "\n";
    }
  }
  return text;
}

Result<std::string> explainCall(const CallableOp &op, const kpkg_call &call, kpkg_text_format format) {
  FrameLease frame;
  const OpEntry &entry = op.entry();
  if (entry.schema.empty()) // known only by the name of its fallback
    frame->bindAsGiven(call);
  else if (Status status = frame->bind(entry, call, op.currentRestriction()); !status)
    return status.error();
  ordered_json record;
  record["op"] = op.entry().name;
  std::string refusal = frame->foreign;
  if (environment().isDisabled(op.entry().name))
    refusal = "the op is disabled by KPKG_DISABLE";
  ordered_json packages = ordered_json::array();
  bool hasDType = !entry.schema.empty();
  for (const kpkg_value &value : frame->values)
    hasDType &= value.kind != KPKG_TENSOR || (value.as.tensor->dtype > 0 && value.as.tensor->dtype < KPKG_DTYPE_COUNT);
  if (hasDType)
    for (const PackagedOp *candidate : op.packagedOps())
      packages.push_back(explainPackage(*candidate, *frame));
  record["batch_invariant"] = batchInvarianceText(frame->invariance);
  record["result"] = conclusion(op, refusal, packages);
  if (!refusal.empty())
    record["refused"] = refusal;
  // The first package that can run it determines the call's totals.
  record["flops"] = 0.0;
  record["bytes"] = 0.0;
  record["launches"] = ordered_json::array();
  for (const ordered_json &package : packages)
    if (package["runs"].get<bool>()) {
      for (const char *key : {"flops", "bytes", "launches"})
        record[key] = package[key];
      break;
    }
  record["packages"] = std::move(packages);
  return format == KPKG_JSON ? record.dump(2) : toText(record);
}

std::string describeUse(const CallableOp &op) {
  kpkg_op_stats stats = op.stats();
  ordered_json record;
  record["op"] = op.entry().name;
  if (op.entry().backward)
    record["backward"] = manifest::write(*op.entry().backward);
  record["calls"] = stats.calls;
  record["resolutions"] = stats.resolutions;
  record["launches"] = stats.launches;
  device::LoadCounts code;
  for (const device::Driver *driver : drivers()) {
    device::LoadCounts own = driver->loadCounts();
    code.loads += own.loads, code.compilations += own.compilations;
  }
  record["process_code"] = {{"loads", code.loads}, {"compilations", code.compilations}};
  record["copies"] = stats.copies;
  record["copied_bytes"] = stats.copied_bytes;
  record["fallbacks"] = stats.fallbacks;
  record["references"] = stats.references;
  record["errors"] = stats.errors;
  record["packages"] = ordered_json::array();
  record["instances"] = ordered_json::array();
  for (const PackagedOp *candidate : op.packagedOps()) {
    record["packages"].push_back(candidate->library().name());
    for (auto [instance, launches] : candidate->uses())
      record["instances"].push_back({{"instance", instance->label},
                                     {"package", candidate->library().name()},
                                     {"target", instance->target},
                                     {"flags", instance->flags},
                                     {"launches", launches}});
  }
  record["fallback_reasons"] = ordered_json::object();
  for (const auto &[reason, count] : op.fallbackReasons())
    record["fallback_reasons"][reason] = count;
  return record.dump(2);
}

} // namespace kpkg::package
