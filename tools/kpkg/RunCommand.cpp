// `kpkg run`: calls an op of a package on inputs from text, checks and times it, and explains what ran.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Agreement.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/RequestedCall.h"
#include "tools/kpkg/bench/Timing.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace kpkg::command {

namespace {

struct RunOptions {
  CallRequest request;
  bool check = false;
  bool time = false;
  int repeats = 20;
};

/// Checks that the reference's results agree with the op's. The reference runs at the op's place, or on the host if it
/// has no code there.
ExitCode checkAgainstReference(const Library &library, const Op &op, const Place &place,
                               const std::vector<Named> &named, const std::vector<Tensor> &results) {
  if (!*op.info().reference) {
    fmt::print(stderr, "kpkg: error: {} has no packaged reference to check against\n", op.name());
    return InputRefused;
  }
  auto reference = library.op(op.info().reference);
  if (!reference)
    return report(reference.error());
  auto there =
      place.isCuda() && !whyNotOn(place.device, *reference, named).empty() ? hostPlace() : Result<Place>(place);
  if (!there)
    return report(there.error());
  auto arguments = moveTo(*there, named);
  if (!arguments)
    return report(arguments.error());
  auto expected = reference->call(there->stream, {}, *arguments);
  if (expected)
    expected = toHost(*there, *expected);
  if (!expected)
    return report(expected.error());
  ExitCode code = Success;
  double flops = estimatedFlops(op, named);
  for (size_t i = 0; i < results.size(); ++i) {
    Difference difference = compare(results[i], (*expected)[i]);
    double limit = allowedError(results[i], flops);
    bool good = difference.within(limit);
    double scale = difference.scale > 0 ? difference.scale : 1;
    fmt::print("check     {}{}: largest error {:.2e} of the largest value {:.4g}, limit {:.2e}{}: {}\n",
               op.info().reference, place.isCuda() && !there->isCuda() ? " on the CPU" : "", difference.largest / scale,
               difference.scale, limit, difference.classMismatch ? ", NaN or infinity differs" : "",
               good ? "ok" : "WRONG");
    if (!good)
      code = InputRefused;
  }
  return code;
}

/// Prints GFLOP/s and GB/s by the package's estimates, if it has them.
void printRates(const Op &op, const std::vector<Named> &named, double seconds) {
  auto text = op.explain({}, named, KPKG_JSON);
  if (!text)
    return;
  auto resolution = nlohmann::json::parse(*text);
  if (double flops = resolution.value("flops", 0.0); flops > 0)
    fmt::print("rate      {:.1f} GFLOP/s ({:.4g} GFLOP)\n", flops / seconds * 1e-9, flops * 1e-9);
  if (double bytes = resolution.value("bytes", 0.0); bytes > 0)
    fmt::print("traffic   {:.1f} GB/s ({:.4g} MB between kernels and memory)\n", bytes / seconds * 1e-9, bytes * 1e-6);
}

/// Times a call like kpkg bench, so that both report the same time.
ExitCode printTime(const Op &op, const Place &place, const std::vector<Named> &named, int repeats) {
  auto call = bench::RepeatedCall::prepare(place, op, named);
  if (!call)
    return report(call.error());
  auto samples = bench::sample(place, *call, repeats);
  if (!samples)
    return report(samples.error());
  fmt::print("time      {:.{}f} ms (median of {}{}, {})\n", samples->median * 1e3, samples->median < 1e-3 ? 4 : 3,
             samples->count,
             place.isCuda() ? ", caches flushed before each" : fmt::format(", {} threads", kpkg_cpu_threads()),
             call->allocates() ? "with the allocation of results" : "results go to memory that is there");
  printRates(op, named, samples->median);
  return Success;
}

/// Returns the resolution without instances that were rejected for uninteresting reasons.
std::string summarize(const std::string &explanation) {
  std::istringstream lines(explanation);
  std::string summary;
  size_t left = 0;
  for (std::string line; std::getline(lines, line);) {
    bool isRefused = line.starts_with("    - ") &&
                     (line.find(": has ") != std::string::npos || line.find(": is for ") != std::string::npos ||
                      line.find(": would do; ") != std::string::npos);
    if (isRefused)
      ++left;
    else
      summary += line + "\n";
  }
  if (left)
    summary += fmt::format("    ({} instances for other parameters or processors, or not as good; `kpkg explain` with "
                           "the op and its inputs "
                           "lists them)\n",
                           left);
  return summary;
}

ExitCode run(const RunOptions &options) {
  auto call = RequestedCall::prepare(options.request);
  if (!call)
    return report(call.error());
  const Op &op = call->op;
  const Place &place = call->place;
  const std::vector<Named> &named = call->placed;
  fmt::print("op        {}\ndevice    {}\n", printableLines(op.schema()), call->placeText());
  for (size_t i = 0; i < named.size(); ++i)
    if (const auto &tensors = named[i].second.asTensors(); !tensors.empty())
      for (size_t k = 0; k < tensors.size(); ++k)
        fmt::print("input     {}[{}] = {}\n", named[i].first, k, describe(tensors[k]));
    else if (named[i].second.asTensor().dtype() != DType::None)
      fmt::print("input     {} = {}\n", named[i].first, describe(named[i].second.asTensor()));
    else
      fmt::print("input     {}\n", options.request.inputs[i]);

  auto made = op.call(place.stream, {}, named);
  if (!made)
    return report(made.error());
  auto results = toHost(place, *made);
  if (!results)
    return report(results.error());
  for (const Tensor &result : *results)
    fmt::print("result    {}\n", describe(result));

  ExitCode code = Success;
  if (options.check)
    code = checkAgainstReference(call->library, op, place, call->given, *results);
  if (options.time)
    if (ExitCode timed = printTime(op, place, named, options.repeats); timed != Success)
      return timed;
  auto why = op.explain({}, named);
  if (!why)
    return report(why.error());
  fmt::print("{}", printableLines(summarize(*why)));
  return code;
}

} // namespace

void addRun(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("run", "Call an op of a package on generated inputs");
  command->footer(
      "Example: kpkg run gemm.kpkg gemm --input \"a=randn(512,512,bf16)\" --input \"b=randn(512,512,bf16).T\" "
      "--input alpha=0.5 --check --time\n"
      "Inputs: randn, rand, zeros, ones, arange of extents, a dtype (f64 f32 f16 bf16 i32 ...) and seed=N; "
      "tensor([1,2],i64) of numbers; .T behind for a transposed view; numbers, true, false, none, [2,3], 'text'. A "
      "list of tensors: "
      "\"params=[randn(64,64),randn(64)]\".");
  auto options = std::make_shared<RunOptions>();
  command->add_option("package", options->request.package, "The .kpkg file")->required();
  command->add_option("op,--op", options->request.op, "The op, such as kpkg::gemm or gemm")->required();
  command->add_option("-i,--input", options->request.inputs, "An argument, name=value; may be repeated")
      ->allow_extra_args(false);
  command->add_option(
      "--device", options->request.device,
      "cpu, cuda or cuda:N; default: the GPU when there is one and the package has code for it, else the CPU");
  command->add_option("--seed", options->request.seed, "Seed of random inputs without one of their own")
      ->capture_default_str();
  command->add_flag("--check", options->check, "Compare with the packaged reference");
  command->add_flag("--time", options->time, "Time the call, as kpkg bench does: results go to memory that is there");
  command->add_option("--repeats", options->repeats, "Timed calls")->capture_default_str()->check(CLI::PositiveNumber);
  command->callback([options, &exitCode] { exitCode = run(*options); });
}

} // namespace kpkg::command
