// Runs every instance of a package that this machine can run, and compares it with the packaged references.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/verify/InstanceCheck.h"
#include "tools/kpkg/Agreement.h"
#include "tools/kpkg/CheckedCall.h"
#include "tools/kpkg/DrawnCase.h"
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/Report.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace kpkg::command::verify {

namespace {

using nlohmann::json;

/// Limit of draws for a dtype, after which the op is assumed not to support it.
constexpr int mostDraws = 400;
/// Calls of an instance for each op; more would not add information.
constexpr int mostCalls = 12;

/// A launch of a call: its chosen instance, and the other possible ones.
struct LaunchChoice {
  std::string kernel, chosen;
  std::vector<std::string> others;
};

std::vector<LaunchChoice> choicesOf(const Op &op, const std::vector<std::string> &inputs, const Place &place) {
  std::vector<LaunchChoice> all;
  auto named = parseInputs(inputs, 0);
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

/// Returns how many instances the package has for targets that this CPU runs.
size_t runnableOnHost(const Library &library) {
  std::set<std::string> targets;
  for (size_t i = 0; const char *target = kpkg_cpu_target(i); ++i)
    targets.insert(target);
  const json manifest = json::parse(library.manifest());
  size_t count = 0;
  for (const json &instance : manifest["instances"])
    count += targets.count(instance["target"].get<std::string>());
  return count;
}

struct InstanceRecord {
  int calls = 0, right = 0;
  Errors worst;
  bool isDeterministic = true;
  /// Describes the first wrong call.
  std::string op, wrong;
  std::vector<std::string> inputs;
};

class Check {
public:
  Check(const Library &library, const CheckOptions &options) : library(library), options(options) {
    for (const std::string &input : options.inputs)
      fixed.push_back(input.substr(0, input.find('=')));
  }

  /// Runs drawn calls. `hasRun` is false if the op accepted none; `refusal` says why.
  Status run(const Op &op, const Op &reference, const Place &place, bool &hasRun, std::string &refusal);
  /// Returns the exit code after all ops.
  ExitCode print() const;

private:
  using Call = std::vector<LaunchChoice>;
  Status testDType(const Op &op, const Op &reference, const Place &place, DType dtype, std::string &refusal,
                   bool &hasRun);
  Status testCase(const Op &op, const Op &reference, const Place &place, const std::vector<std::string> &inputs);
  Result<Op> pinned(const Op &op, const std::string &kernel, const std::string &instance) const;
  void compare(const Op &op, const Op &used, const Place &place, const std::vector<std::string> &inputs,
               const std::vector<Tensor> &expected, double flops, const std::vector<std::string> &ran);
  std::vector<std::string> fixed;
  std::map<std::string, InstanceRecord> records;
  std::set<std::string> ofReferences; ///< instances that references ran, in calls to compare with
  std::set<std::string> claimsDeterministic;
  const Library &library;
  const CheckOptions &options;
};

Status Check::run(const Op &op, const Op &reference, const Place &place, bool &hasRun, std::string &refusal) {
  bool drawsTensors = std::any_of(op.arguments().begin(), op.arguments().end(), [&](const ArgumentInfo &argument) {
    return (argument.kind == KPKG_TENSOR || argument.kind == KPKG_TENSOR_LIST) &&
           std::find(fixed.begin(), fixed.end(), argument.name) == fixed.end();
  });
  if (!drawsTensors)
    return testDType(op, reference, place, DType::None, refusal, hasRun);
  for (DType dtype : drawnDTypes)
    if (Status status = testDType(op, reference, place, dtype, refusal, hasRun); !status)
      return status;
  return {};
}

Status Check::testDType(const Op &op, const Op &reference, const Place &place, DType dtype, std::string &refusal,
                        bool &hasRun) {
  std::mt19937_64 random(options.seed * 64 + uint64_t(dtype));
  int cases = 0;
  for (int draw = 0; draw < mostDraws && cases < options.cases; ++draw) {
    std::vector<std::string> inputs = drawInputs(op, dtype, fixed, random, refusal);
    if (inputs.empty() && fixed.empty())
      return {};
    inputs.insert(inputs.end(), options.inputs.begin(), options.inputs.end());
    auto named = parseInputs(inputs, 0);
    if (!named)
      return named.error();
    if (auto inferred = op.infer({}, *named); !inferred) {
      refusal = inferred.error().message;
      continue;
    }
    if (std::string why = whyNotOn(place.device, op, *named); !why.empty()) {
      refusal = why;
      continue;
    }
    ++cases;
    hasRun = true;
    if (Status status = testCase(op, reference, place, inputs); !status)
      return status;
  }
  return {};
}

Status Check::testCase(const Op &op, const Op &reference, const Place &place, const std::vector<std::string> &inputs) {
  auto host = hostPlace();
  auto named = parseInputs(inputs, 0);
  if (!host || !named)
    return host ? named.error() : host.error();
  const Place &there = place.isCuda() && whyNotOn(place.device, reference, *named).empty() ? place : *host;
  auto expected = outcome(reference, inputs, there);
  if (!expected)
    return expected.error();
  for (const LaunchChoice &choice : choicesOf(reference, inputs, there))
    ofReferences.insert(choice.chosen);
  Call call = choicesOf(op, inputs, place);
  double flops = estimatedFlops(op, *named);
  std::vector<std::string> ran;
  for (const LaunchChoice &choice : call)
    ran.push_back(choice.chosen);
  compare(op, op, place, inputs, *expected, flops, ran);
  std::set<std::string> kernels;
  for (const LaunchChoice &choice : call) {
    if (!kernels.insert(choice.kernel).second)
      continue;
    for (const std::string &other : choice.others) {
      if (records[other].calls >= mostCalls)
        continue;
      auto one = pinned(op, choice.kernel, other);
      if (!one)
        return one.error();
      std::vector<std::string> replaced;
      // A kernel that is launched twice may need several instances, so that the pinned one cannot run the call.
      Call restricted = choicesOf(*one, inputs, place);
      for (const LaunchChoice &each : restricted)
        replaced.push_back(each.chosen);
      if (restricted.size() == call.size())
        compare(op, *one, place, inputs, *expected, flops, replaced);
    }
  }
  return {};
}

Result<Op> Check::pinned(const Op &op, const std::string &kernel, const std::string &instance) const {
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

/// Returns whether two outcomes are bitwise equal.
bool areEqual(const std::vector<Tensor> &a, const std::vector<Tensor> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), sameBits);
}

void Check::compare(const Op &op, const Op &used, const Place &place, const std::vector<std::string> &inputs,
                    const std::vector<Tensor> &expected, double flops, const std::vector<std::string> &ran) {
  auto actual = outcome(used, inputs, place);
  std::string wrong = actual ? firstDisagreement(*actual, expected, flops) : printableLines(actual.error().message);
  Errors errors;
  if (actual)
    for (size_t i = 0; i < std::min(actual->size(), expected.size()); ++i)
      errors.add((*actual)[i], expected[i]);
  auto again = actual ? outcome(used, inputs, place) : actual;
  bool isSame = actual && again && areEqual(*actual, *again);
  if (auto info = json::parse(used.kernelInfo(), nullptr, /*allow_exceptions=*/false); info.is_object())
    for (const json &instance : info["instances"])
      for (const json &flag : instance["flags"])
        if (flag == "deterministic")
          claimsDeterministic.insert(instance["instance"].get<std::string>());
  for (const std::string &label : std::set<std::string>(ran.begin(), ran.end())) {
    InstanceRecord &record = records[label];
    ++record.calls;
    record.worst.include(errors);
    record.isDeterministic &= isSame;
    if (wrong.empty()) {
      ++record.right;
    } else if (record.wrong.empty()) {
      record.op = op.name();
      record.wrong = wrong;
      record.inputs = inputs;
    }
  }
}

ExitCode Check::print() const {
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
      for (const std::string &input : record.inputs)
        fmt::print("           --input \"{}\"\n", input);
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
  auto references = std::count_if(ofReferences.begin(), ofReferences.end(),
                                  [&](const std::string &label) { return !records.count(label); });
  fmt::print("instances  {} were compared, {} computed what they were compared with; the package has {} for this CPU\n",
             records.size(), references, runnableOnHost(library));
  return isGood ? Success : InputRefused;
}

/// Returns the host, and the first GPU if there is one.
Result<std::vector<Place>> places() {
  std::vector<Place> all;
  auto host = hostPlace();
  if (!host)
    return host.error();
  all.push_back(std::move(*host));
  if (auto count = cudaDeviceCount(); count && *count > 0) {
    auto gpu = cudaPlace(0);
    if (!gpu)
      return gpu.error();
    all.push_back(std::move(*gpu));
  }
  return all;
}

} // namespace

ExitCode checkInstances(const Library &library, const CheckOptions &options) {
  auto where = places();
  if (!where)
    return report(where.error());
  bool isKnown = options.op.empty();
  Check check(library, options);
  for (const Op &op : library.ops()) {
    if (!options.op.empty() && options.op != op.name() && !op.name().ends_with("::" + options.op))
      continue;
    isKnown = true;
    if (!*op.info().reference)
      continue;
    auto reference = library.op(op.info().reference);
    if (!reference)
      return report(reference.error());
    bool hasRun = false;
    std::string refusal;
    for (const Place &place : *where)
      if (Status status = check.run(op, *reference, place, hasRun, refusal); !status)
        return report(status.error());
    if (!hasRun)
      fmt::print("unchecked  {}: it took none of the drawn inputs; give some with --input; the last refusal: {}\n",
                 op.name(), printableLines(refusal));
  }
  if (!isKnown) {
    fmt::print(stderr, "kpkg: error: the package has no op '{}'\n", options.op);
    return InputRefused;
  }
  return check.print();
}

} // namespace kpkg::command::verify
