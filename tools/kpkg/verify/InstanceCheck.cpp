// Runs every instance of a package that this machine can run, and compares it with the packaged references.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/verify/InstanceCheck.h"
#include "tools/kpkg/CheckedCall.h"
#include "tools/kpkg/DrawnCase.h"
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/verify/BatchCheck.h"
#include "tools/kpkg/verify/CallCheck.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace kpkg::command::verify {

namespace {

using nlohmann::json;

/// Limit of draws for a dtype, after which the op is assumed not to support it.
constexpr int mostDraws = 400;

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

class Check {
public:
  Check(const Library &library, const CheckOptions &options)
      : instances(library, {Instances::All, {}}), library(library), options(options) {
    for (const std::string &input : options.inputs)
      fixed.push_back(input.substr(0, input.find('=')));
  }

  /// Runs drawn calls. `hasRun` is false if the op accepted none; `refusal` says why.
  Status run(const Op &op, const Op &reference, const Place &place, bool &hasRun, std::string &refusal);
  /// Returns the exit code after all ops.
  ExitCode print() const;

private:
  Status testDType(const Op &op, const Op &reference, const Place &place, DType dtype, std::string &refusal,
                   bool &hasRun);
  Status testCase(const Op &op, const Op &reference, const Place &place, const std::vector<std::string> &inputs);
  std::vector<std::string> fixed;
  CallCheck instances;
  BatchCheck batches;
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
  auto expected = outcome(reference, *named, there);
  if (!expected)
    return expected.error();
  TestedCall call = {[&] { return parseInputs(inputs, 0); }, {}};
  for (const std::string &input : inputs)
    call.lines.push_back("--input \"" + input + "\"");
  instances.noteReference(reference, there, call);
  if (Status status = batches.run(op, reference, place, call); !status)
    return status;
  return instances.compareAll(op, place, call, *expected);
}

ExitCode Check::print() const {
  bool isGood = instances.print();
  isGood &= batches.print();
  fmt::print("instances  {} were compared, {} computed what they were compared with; the package has {} for this CPU\n",
             instances.compared(), instances.onlyInReferences(), runnableOnHost(library));
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
