// `kpkg tune`: measures the alternatives of kernels on this machine, and stores the fastest in the package's tuning
// table.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/OutputFile.h"
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/bench/Sweep.h"
#include "tools/kpkg/tune/Rows.h"
#include "tools/kpkg/tune/Search.h"
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <set>

namespace kpkg::command {

namespace {

using nlohmann::json;

struct TuneOptions {
  std::string package;
  std::string op;
  std::vector<std::string> inputs;
  std::vector<std::string> sweeps;
  double budget = 60;
  uint64_t seed = 0;
  std::string device;
  std::string output;
  std::string rows;
};

/// Returns the launches of a call that have alternatives.
Result<json> tunedLaunches(const Op &op, const std::vector<Named> &named) {
  auto text = op.explain({}, named, KPKG_JSON);
  if (!text)
    return text.error();
  json resolution = json::parse(*text), launches = json::array();
  for (const json &launch : resolution["launches"])
    if (launch.contains("choice"))
      launches.push_back(launch);
  return launches;
}

/// Returns `config` with these values for the kernel.
KernelConfig pinned(KernelConfig config, const std::string &kernel, const json &values) {
  KernelConfig::Values pins;
  for (const auto &[name, value] : values.items())
    pins.push_back({name, {value.is_boolean() ? (value.get<bool>() ? "True" : "False") : value.dump()}});
  config.kernels.emplace_back(kernel, std::move(pins));
  return config;
}

/// Returns the op restricted to the instances that `config` allows.
Result<Op> restricted(const Library &library, const std::string &name, const KernelConfig &config) {
  Registry registry; // kept alive by the op
  Status status = registry.add(library);
  if (status)
    status = registry.restrict(name, config);
  if (!status)
    return status.error();
  return registry.op(name);
}

bool offers(const json &launch, const json &values) {
  const json &alternatives = launch["choice"]["alternatives"];
  return std::any_of(alternatives.begin(), alternatives.end(),
                     [&](const json &alternative) { return alternative["values"] == values; });
}

void print(const std::vector<tune::Contender> &contenders, size_t chosen) {
  double best = contenders[chosen].seconds();
  for (size_t i = 0; i < contenders.size(); ++i) {
    const tune::Contender &contender = contenders[i];
    if (!contender.failure.empty())
      fmt::print("    - {}: {}\n", contender.name, contender.failure);
    else
      fmt::print("    {} {:10.2f} us  {:5.2f}x  {}\n", i == chosen ? "+" : "-", contender.seconds() * 1e6,
                 contender.seconds() / best, contender.name);
  }
}

/// Measures the alternatives of every kernel of the call, one kernel after the other, and adds their rows.
Status tuneCall(const Place &place, const Library &library, const Op &op, const std::vector<Named> &named,
                const tune::SearchLimits &limits, tune::Rows &rows, size_t &found) {
  auto launches = tunedLaunches(op, named);
  if (!launches)
    return launches.error();
  KernelConfig config; // for the finished kernels
  std::set<std::string> kernels;
  for (const json &launch : *launches)
    kernels.insert(launch["kernel"]);
  for (const json &first : *launches) {
    std::string kernel = first["kernel"];
    if (!kernels.erase(kernel)) // launched before in this call
      continue;
    std::vector<tune::Contender> contenders;
    for (const json &alternative : first["choice"]["alternatives"]) {
      auto one = restricted(library, op.name(), pinned(config, kernel, alternative["values"]));
      if (!one)
        return one.error();
      contenders.push_back({alternative["instance"], alternative.value("cycles", 0.0), std::move(*one)});
    }
    auto chosen = tune::search(place, contenders, named, limits);
    if (!chosen)
      return chosen.error();
    fmt::print("  kernel {}\n", kernel);
    print(contenders, *chosen);
    const json &values = first["choice"]["alternatives"][*chosen]["values"];
    for (const json &launch : *launches)
      if (launch["kernel"] == kernel && offers(launch, values)) {
        rows.set(launch["choice"]["row"], values);
        ++found;
      }
    config = pinned(std::move(config), kernel, values);
  }
  return {};
}

ExitCode run(const TuneOptions &options) {
  auto points = bench::expandSweeps(options.sweeps, options.inputs);
  if (!points) {
    report(points.error());
    return UsageError;
  }
  auto library = openPackage(options.package);
  if (!library)
    return report(library.error());
  auto op = library->op(options.op);
  if (!op)
    return report(op.error());
  auto rows = tune::Rows::of(options.package);
  if (!rows)
    return report(rows.error());

  std::optional<Place> place;
  size_t found = 0;
  auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < points->size(); ++i) {
    std::vector<Named> named;
    std::string inputs;
    for (size_t n = 0; n < options.inputs.size(); ++n) {
      std::string text = bench::substitute(options.inputs[n], (*points)[i]);
      auto input = parseInput(text, options.seed + n);
      if (!input)
        return report(input.error());
      named.push_back(std::move(*input));
      inputs += " " + text;
    }
    if (!place) {
      auto chosen = choosePlace(options.device, *op, named);
      if (!chosen)
        return report(chosen.error());
      place = std::move(*chosen);
      fmt::print("on {}{}\n", place->name, place->why.empty() ? "" : "; " + place->why);
    }
    auto there = moveTo(*place, named);
    if (!there)
      return report(there.error());
    fmt::print("{}{}\n", op->name(), inputs);
    // Distributes the unused time of a call to the remaining calls.
    double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    double share = std::max(options.budget - spent, 0.0) / double(points->size() - i);
    if (Status status = tuneCall(*place, *library, *op, *there, {share, options.seed}, *rows, found); !status)
      return report(status.error());
  }
  if (found == 0) {
    fmt::print(stderr,
               "kpkg: error: nothing to tune: on this device these calls of {} have no kernel with alternatives\n",
               op->name());
    return InputRefused;
  }
  bool wasSigned = false;
  auto bytes = tune::withTable(options.package, rows->table(), wasSigned);
  if (!bytes)
    return report(bytes.error());
  const std::string &path = options.output.empty() ? options.package : options.output;
  if (Status status = format::writeFile(path, *bytes); !status)
    return report(status.error());
  if (wasSigned)
    fmt::print(stderr, "kpkg: note: the package's signature is gone; sign it again\n");
  fmt::print("{}: {} rows\n", path, rows->size());
  if (!options.rows.empty())
    if (Status status = format::writeFile(options.rows, rows->table().dump(1) + "\n"); !status)
      return report(status.error());
  return Success;
}

} // namespace

void addTune(CLI::App &app, int &exitCode) {
  auto *command =
      app.add_subcommand("tune", "Measure the alternatives of kernels here, and keep the fastest in the package");
  command->footer("Example: kpkg tune gemm.kpkg gemm --input \"a=randn(N,N,bf16)\" --input \"b=randn(N,N,bf16)\" "
                  "--sweep N=1024,4096 --budget 60\n"
                  "Inputs and sweeps are those of kpkg bench. Calls with shapes near the measured ones take the same "
                  "row; others follow the cost model.");
  auto options = std::make_shared<TuneOptions>();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command->add_option("op,--op", options->op, "The op, such as kpkg::gemm or gemm")->required();
  command->add_option("-i,--input", options->inputs, "An argument, name=value; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--sweep", options->sweeps,
                   "NAME=value,value: what NAME stands for in inputs; may be repeated, for all combinations")
      ->allow_extra_args(false);
  command
      ->add_option("--budget", options->budget, "Seconds for all of it; every alternative is measured once in any case")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--device", options->device, "cpu, cuda or cuda:N, as for kpkg bench");
  command->add_option("--seed", options->seed, "Seed of random inputs, and of the order of measurements")
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "Write the package here instead of back");
  command->add_option("--rows", options->rows, "Also write the table as JSON, for kpkg build --tuning");
  command->callback([options, &exitCode] { exitCode = run(*options); });
}

} // namespace kpkg::command
