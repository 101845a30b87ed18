// `kpkg run`: calls an op of a package on inputs made from text; checks it, times it, says what ran and why.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Elements.h"
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/Report.h"
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace kpkg::command {

namespace {

/// Errors up to this many unit roundoffs of the result's dtype, relative to the largest reference value, pass `--check`.
constexpr double CheckFactor = 32;

struct RunOptions {
  std::string package;
  std::string op;
  std::vector<std::string> inputs;
  uint64_t seed = 0;
  bool check = false;
  bool time = false;
  int repeats = 20;
};

/// The reference's results must agree with the op's.
ExitCode checkAgainstReference(const Library &library, const Op &op, const std::vector<Named> &named,
                               const std::vector<Tensor> &results) {
  if (!*op.info().reference) {
    fmt::print(stderr, "kpkg: error: {} has no packaged reference to check against\n", op.name());
    return InputRefused;
  }
  auto reference = library.op(op.info().reference);
  if (!reference)
    return report(reference.error());
  auto expected = reference->call({}, {}, named);
  if (!expected)
    return report(expected.error());
  ExitCode code = Success;
  for (size_t i = 0; i < results.size(); ++i) {
    Difference difference = compare(results[i], (*expected)[i]);
    bool good = difference.within(results[i].dtype(), CheckFactor);
    double scale = difference.scale > 0 ? difference.scale : 1;
    fmt::print("check     {}: largest error {:.2e} of the largest value {:.4g}, limit {:.2e}{}: {}\n",
               op.info().reference, difference.largest / scale, difference.scale,
               CheckFactor * unitRoundoff(results[i].dtype()), difference.classMismatch ? ", NaN or infinity differs" : "",
               good ? "ok" : "WRONG");
    if (!good)
      code = InputRefused;
  }
  return code;
}

/// Median seconds of a call, after warming up.
Result<double> measure(const Op &op, const std::vector<Named> &named, int repeats) {
  std::vector<double> seconds;
  for (int i = -2; i < repeats; ++i) {
    auto start = std::chrono::steady_clock::now();
    auto results = op.call({}, {}, named);
    if (!results)
      return results.error();
    if (i >= 0)
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

/// GFLOP/s and GB/s by the package's own estimates, where it has them.
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

/// The resolution without the instances that were never a choice: made for other parameters or another processor.
std::string summarize(const std::string &explanation) {
  std::istringstream lines(explanation);
  std::string summary;
  size_t left = 0;
  for (std::string line; std::getline(lines, line);) {
    bool isRefused = line.starts_with("    - ") &&
                     (line.find(": has ") != std::string::npos || line.find(": is for ") != std::string::npos);
    if (isRefused)
      ++left;
    else
      summary += line + "\n";
  }
  if (left)
    summary += fmt::format("    ({} instances for other parameters or processors; kpkg explain lists them)\n", left);
  return summary;
}

ExitCode run(const RunOptions &options) {
  auto library = Library::open(options.package);
  if (!library)
    return report(library.error());
  auto op = library->op(options.op);
  if (!op)
    return report(op.error());

  std::vector<Named> named;
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    auto input = parseInput(options.inputs[i], options.seed + i);
    if (!input)
      return report(input.error());
    named.push_back(*input);
  }
  fmt::print("op        {}\n", op->schema());
  for (size_t i = 0; i < named.size(); ++i)
    if (named[i].second.asTensor().dtype() != DType::None)
      fmt::print("input     {} = {}\n", named[i].first, describe(named[i].second.asTensor()));
    else
      fmt::print("input     {}\n", options.inputs[i]);

  auto results = op->call({}, {}, named);
  if (!results)
    return report(results.error());
  for (const Tensor &result : *results)
    fmt::print("result    {}\n", describe(result));

  ExitCode code = Success;
  if (options.check)
    code = checkAgainstReference(*library, *op, named, *results);
  if (options.time) {
    auto seconds = measure(*op, named, options.repeats);
    if (!seconds)
      return report(seconds.error());
    fmt::print("time      {:.3f} ms (median of {}, {} threads)\n", *seconds * 1e3, options.repeats, kpkg_cpu_threads());
    printRates(*op, named, *seconds);
  }
  auto why = op->explain({}, named);
  if (!why)
    return report(why.error());
  fmt::print("{}", summarize(*why));
  return code;
}

} // namespace

void addRun(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("run", "Call an op of a package on generated inputs");
  command->footer("Example: kpkg run gemm.kpkg gemm --input \"a=randn(512,512,bf16)\" --input \"b=randn(512,512,bf16).T\" "
                  "--input alpha=0.5 --check --time\n"
                  "Inputs: randn, rand, zeros, ones, arange of extents, a dtype (f64 f32 f16 bf16 i32 ...) and seed=N; .T behind for a "
                  "transposed view; numbers, true, false, none, [2,3], 'text'.");
  auto options = std::make_shared<RunOptions>();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command->add_option("op", options->op, "The op, such as kpkg::gemm or gemm")->required();
  command->add_option("-i,--input", options->inputs, "An argument, name=value; may be repeated")->allow_extra_args(false);
  command->add_option("--seed", options->seed, "Seed of random inputs without one of their own")->capture_default_str();
  command->add_flag("--check", options->check, "Compare with the packaged reference");
  command->add_flag("--time", options->time, "Time the call");
  command->add_option("--repeats", options->repeats, "Timed calls")->capture_default_str()->check(CLI::PositiveNumber);
  command->callback([options, &exitCode] { exitCode = run(*options); });
}

} // namespace kpkg::command
