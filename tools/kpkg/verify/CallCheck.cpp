// Runs a call with each instance that can run it, and collects how far its results are from expected ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/verify/CallCheck.h"
#include "tools/kpkg/CheckedCall.h"
#include "tools/kpkg/Report.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kpkg::command::verify {

using nlohmann::json;

namespace {

/// Calls of an instance for each op; more would not add information.
constexpr int mostCalls = 12;

/// A launch of a call: its chosen instance, and the other possible ones.
struct LaunchChoice {
  std::string kernel, chosen;
  std::vector<std::string> others;
};

std::vector<LaunchChoice> choicesOf(const Op &op, const TestedCall &call, const Place &place) {
  std::vector<LaunchChoice> all;
  auto named = call.make();
  if (named)
    named = moveTo(place, *named);
  auto text = named ? op.explain({}, *named, KPKG_JSON) : named.error();
  if (!text)
    return all;
  const json resolution = json::parse(*text);
  for (const json &launch : resolution["launches"]) {
    LaunchChoice choice = {launch["kernel"], launch["chosen"], {}};
    for (const json &instance : launch["instances"])
      if (instance["instance"] != launch["chosen"] &&
          (instance["accepted"] == true || instance["reason"].get<std::string>().starts_with("would do")))
        choice.others.push_back(instance["instance"]);
    all.push_back(std::move(choice));
  }
  return all;
}

std::vector<std::string> chosenOf(const std::vector<LaunchChoice> &call) {
  std::vector<std::string> labels;
  for (const LaunchChoice &choice : call)
    labels.push_back(choice.chosen);
  return labels;
}

/// Returns whether two outcomes are bitwise equal.
bool areEqual(const std::vector<Tensor> &a, const std::vector<Tensor> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), sameBits);
}

} // namespace

void CallCheck::noteReference(const Op &reference, const Place &place, const TestedCall &call) {
  for (const LaunchChoice &choice : choicesOf(reference, call, place))
    ofReferences.insert(choice.chosen);
}

bool CallCheck::wants(const std::vector<std::string> &labels) const {
  return wanted.kind != Instances::One || std::find(labels.begin(), labels.end(), wanted.label) != labels.end();
}

Status CallCheck::forEachInstance(
    const Op &op, const Place &place, const TestedCall &call,
    const std::function<void(const Op &used, const std::vector<std::string> &labels)> &visit) const {
  std::vector<LaunchChoice> choices = choicesOf(op, call, place);
  if (std::vector<std::string> chosen = chosenOf(choices); wants(chosen))
    visit(op, chosen);
  if (wanted.kind == Instances::Chosen)
    return {};
  std::set<std::string> kernels;
  for (const LaunchChoice &choice : choices) {
    if (!kernels.insert(choice.kernel).second)
      continue;
    for (const std::string &other : choice.others) {
      auto known = records.find(other);
      if ((known != records.end() && known->second.calls >= mostCalls) || !wants({other}))
        continue;
      auto one = pinned(op, choice.kernel, other);
      if (!one)
        return one.error();
      // A kernel that is launched twice may need several instances, so that the pinned one cannot run the call.
      std::vector<std::string> replaced = chosenOf(choicesOf(*one, call, place));
      if (replaced.size() == choices.size())
        visit(*one, replaced);
    }
  }
  return {};
}

Status CallCheck::runAll(const Op &op, const Place &place, const TestedCall &call, const RunReport &report) {
  return forEachInstance(op, place, call, [&](const Op &used, const std::vector<std::string> &labels) {
    auto named = call.make();
    auto results = named ? outcome(used, *named, place) : named.error();
    report(labels, results ? Status{} : results.error());
  });
}

Status CallCheck::compareAll(const Op &op, const Place &place, const TestedCall &call,
                             const std::vector<Tensor> &expected) {
  auto named = call.make();
  if (!named)
    return named.error();
  double flops = estimatedFlops(op, *named);
  return forEachInstance(op, place, call, [&](const Op &used, const std::vector<std::string> &labels) {
    compare(op, used, place, call, expected, flops, labels);
  });
}

Result<Op> CallCheck::pinned(const Op &op, const std::string &kernel, const std::string &instance) const {
  Registry registry; // kept alive by the op
  Status status = registry.add(library);
  if (status)
    status = registry.setPolicy(Policy::Strict);
  if (status)
    status = registry.restrict(op.name(), json{{"instances", {{kernel, instance}}}}.dump());
  if (!status)
    return status.error();
  return registry.op(op.name());
}

void CallCheck::compare(const Op &op, const Op &used, const Place &place, const TestedCall &call,
                        const std::vector<Tensor> &expected, double flops, const std::vector<std::string> &ran) {
  auto run = [&] {
    auto named = call.make();
    return named ? outcome(used, *named, place) : named.error();
  };
  auto actual = run();
  std::string wrong = actual ? firstDisagreement(*actual, expected, flops) : printableLines(actual.error().message);
  Errors errors;
  if (actual)
    for (size_t i = 0; i < std::min(actual->size(), expected.size()); ++i)
      errors.add((*actual)[i], expected[i]);
  auto again = actual ? run() : actual;
  bool isSame = actual && again && areEqual(*actual, *again);
  if (auto info = json::parse(used.kernelInfo(), nullptr, /*allow_exceptions=*/false); info.is_object())
    for (const json &instance : info["instances"])
      for (const json &flag : instance["flags"])
        if (flag == "deterministic")
          claimsDeterministic.insert(instance["instance"].get<std::string>());
  for (const std::string &label : std::set<std::string>(ran.begin(), ran.end())) {
    Record &record = records[label];
    ++record.calls;
    record.worst.include(errors);
    record.isDeterministic &= isSame;
    if (wrong.empty()) {
      ++record.right;
    } else if (record.wrong.empty()) {
      record.op = op.name();
      record.wrong = wrong;
      record.lines = call.lines;
    }
  }
}

bool CallCheck::print() const {
  // In a call with several kernels, one that is correct elsewhere is not blamed as long as there is another candidate.
  bool hasCulprit =
      std::any_of(records.begin(), records.end(), [](const auto &item) { return item.second.right == 0; });
  bool isGood = true;
  for (const auto &[label, record] : records) {
    bool isWrong = !record.wrong.empty() && (record.right == 0 || !hasCulprit);
    bool breaksClaim = !record.isDeterministic && claimsDeterministic.count(label);
    isGood &= !isWrong && !breaksClaim;
    std::string printed = printableLines(label);
    if (isWrong) {
      fmt::print("WRONG      {}: {}: {}\n", printed, record.op, record.wrong);
      for (const std::string &line : record.lines)
        fmt::print("           {}\n", printableLines(line));
    } else if (breaksClaim) {
      fmt::print("WRONG      {}: it is said to be deterministic, and two equal calls differ\n", printed);
    } else if (ofReferences.count(label)) {
      fmt::print("unchecked  {}: its reference runs it as well\n", printed);
    } else {
      fmt::print("ok         {}: {} call{}, errors at most {:.3g} ulp, {:.2e} absolute, {:.2e} of the largest value\n",
                 printed, record.calls, record.calls == 1 ? "" : "s", record.worst.ulps, record.worst.absolute,
                 record.worst.relative);
    }
  }
  return isGood;
}

size_t CallCheck::onlyInReferences() const {
  return size_t(std::count_if(ofReferences.begin(), ofReferences.end(),
                              [&](const std::string &label) { return !records.count(label); }));
}

} // namespace kpkg::command::verify
