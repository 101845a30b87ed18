// `kpkg bench`: times ops of a package, and compares them with the device's limits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/OutputFile.h"
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/ProgressLine.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/bench/BenchReport.h"
#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace kpkg::command {

namespace {

using namespace bench;

struct BenchOptions {
  std::string package;
  std::vector<std::string> ops;
  std::vector<std::string> inputs;
  std::vector<std::string> sweeps;
  uint64_t seed = 0;
  int repeats = 20;
  std::string device;
  std::string requirement;
  std::string json;
  std::string html;
};

Error useError(std::string message) { return {KPKG_ERROR_USE, std::move(message), {}, {}, {}}; }

bool takes(const Op &op, const std::string &name) {
  return std::any_of(op.arguments().begin(), op.arguments().end(),
                     [&](const ArgumentInfo &argument) { return name == argument.name; });
}

/// Returns the named ops, or every op that takes exactly these inputs and is not only another op's reference.
Result<std::vector<Op>> chooseOps(const Library &library, const BenchOptions &options,
                                  const std::vector<std::string> &names) {
  std::vector<Op> chosen;
  for (const std::string &name : options.ops) {
    auto op = library.op(name);
    if (!op)
      return op.error();
    chosen.push_back(*op);
  }
  if (!options.ops.empty()) {
    for (const std::string &name : names)
      if (std::none_of(chosen.begin(), chosen.end(), [&](const Op &op) { return takes(op, name); }))
        return useError(fmt::format("--input {}: {} no argument '{}'", name,
                                    chosen.size() == 1 ? chosen[0].name() + " has" : std::string("none of the ops has"),
                                    name));
    return chosen;
  }
  std::vector<Op> all = library.ops();
  for (const Op &op : all) {
    bool isAnothers = std::any_of(all.begin(), all.end(), [&](const Op &other) {
      return op.name() == other.info().reference || op.name() == other.info().backward;
    });
    bool takesAll = std::all_of(names.begin(), names.end(), [&](const std::string &name) { return takes(op, name); });
    bool isComplete = std::all_of(op.arguments().begin(), op.arguments().end(), [&](const ArgumentInfo &argument) {
      return argument.has_default || std::find(names.begin(), names.end(), argument.name) != names.end();
    });
    if (!isAnothers && takesAll && isComplete)
      chosen.push_back(op);
  }
  if (chosen.empty())
    return useError(
        fmt::format("no op of the package takes the inputs [{}]; kpkg info lists the ops", fmt::join(names, ", ")));
  return chosen;
}

DType widestFloat(const std::vector<Named> &named) {
  DType widest = DType::None;
  auto see = [&](DType dtype) {
    bool isWider = dtypeBits(dtype) > dtypeBits(widest);
    if (dtypeIsFloat(dtype) && (widest == DType::None || isWider))
      widest = dtype;
  };
  for (const Named &argument : named) {
    see(argument.second.asTensor().dtype());
    for (const Tensor &tensor : argument.second.asTensors())
      see(tensor.dtype());
  }
  return widest;
}

/// Adds the package's information about the call: its instances and estimates.
Status addResolution(BenchLine &line, const Op &op, const std::vector<Named> &named) {
  auto text = op.explain({}, named, KPKG_JSON);
  if (!text)
    return text.error();
  auto resolution = nlohmann::json::parse(*text);
  line.flops = resolution.value("flops", 0.0);
  line.bytes = resolution.value("bytes", 0.0);
  for (const auto &launch : resolution["launches"]) {
    std::string instance = launch["chosen"];
    if (std::find(line.instances.begin(), line.instances.end(), instance) == line.instances.end())
      line.instances.push_back(instance);
  }
  for (const auto &package : resolution["packages"])
    if (package.value("runs", false)) {
      line.copies = package["copies"];
      line.copiedBytes = package["copied_bytes"];
      break;
    }
  return {};
}

/// Returns the op of the library alone, whose calls meet the requirement.
Result<Op> withRequirement(const Library &library, const Op &op, const std::string &requirement) {
  Registry registry; // kept alive by the op
  KernelConfig config;
  config.require = {requirement};
  Status status = registry.add(library);
  if (status)
    status = registry.setPolicy(Policy::Strict);
  if (status)
    status = registry.restrict(op.name(), config);
  return status ? registry.op(op.name()) : status.error();
}

/// Measures calls of the line that meet the requirement. A refusal becomes the line's error.
Status measureRequired(BenchLine &line, const Library &library, const Op &op, const std::vector<Named> &named,
                       const BenchOptions &options, const Place &place) {
  auto required = withRequirement(library, op, options.requirement);
  if (!required)
    return required.error();
  auto call = RepeatedCall::prepare(place, *required, named);
  auto seconds = call ? sample(place, *call, options.repeats) : call.error();
  if (seconds)
    line.requiredSeconds = seconds->median;
  else
    line.error = seconds.error().message;
  return {};
}

/// Measures one line. The outer result fails if the inputs cannot be created; a call that fails becomes a line with its
/// error.
Result<BenchLine> benchLine(const Library &library, const Op &op, const SweepPoint &point, const BenchOptions &options,
                            std::optional<Place> &place) {
  BenchLine line;
  line.op = op.name();
  line.point = point;
  std::vector<Named> named;
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    if (!takes(op, inputName(options.inputs[i])))
      continue;
    line.inputs.push_back(substitute(options.inputs[i], point));
    auto input = parseInput(line.inputs.back(), options.seed + i);
    if (!input)
      return input.error();
    named.push_back(*input);
  }
  if (!place) {
    auto chosen = choosePlace(options.device, op, named);
    if (!chosen)
      return chosen.error();
    place = std::move(*chosen);
  }
  auto there = moveTo(*place, named);
  if (!there)
    return there.error();
  named = std::move(*there);
  auto call = RepeatedCall::prepare(*place, op, named);
  if (!call) {
    line.error = call.error().message;
    return line;
  }
  line.allocates = call->allocates();
  auto seconds = sample(*place, *call, options.repeats);
  if (!seconds) {
    line.error = seconds.error().message;
    return line;
  }
  line.seconds = *seconds;
  if (Status status = addResolution(line, op, named); !status)
    return status.error();
  line.dtype = widestFloat(named);
  if (!options.requirement.empty())
    if (Status status = measureRequired(line, library, op, named, options, *place); !status)
      return status.error();
  return line;
}

Result<BenchReport> measure(const BenchOptions &options, const std::vector<SweepPoint> &points) {
  auto library = openPackage(options.package);
  if (!library)
    return library.error();
  std::vector<std::string> names;
  for (const std::string &input : options.inputs) {
    names.push_back(inputName(input));
    if (names.back().empty())
      return useError(fmt::format("--input \"{}\": write name=value", input));
  }
  auto ops = chooseOps(*library, options, names);
  if (!ops)
    return ops.error();

  BenchReport report;
  report.package = options.package;
  report.requirement = options.requirement;
  std::optional<Place> place;
  std::set<DType> dtypes;
  ProgressLine progress;
  auto show = progress.callback();
  size_t total = ops->size() * points.size() + 1;
  for (const Op &op : *ops)
    for (const SweepPoint &point : points) {
      if (show)
        show(report.lines.size(), total, op.name());
      auto line = benchLine(*library, op, point, options, place); // the first call determines the place of all
      if (!line)
        return line.error();
      if (line->dtype != DType::None)
        dtypes.insert(line->dtype);
      report.lines.push_back(std::move(*line));
    }
  if (show)
    show(total - 1, total, "the device's limits");
  if (!place->why.empty())
    report.placeNote = "On the CPU: " + place->why + ".";
  auto limits = measureLimits(*place, dtypes);
  if (!limits)
    return limits.error();
  report.limits = std::move(*limits);
  char date[32];
  std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  report.date = date;
  return report;
}

ExitCode run(const BenchOptions &options) {
  auto points = expandSweeps(options.sweeps, options.inputs);
  if (!points) {
    report(points.error());
    return UsageError;
  }
  auto found = measure(options, *points);
  if (!found)
    return report(found.error());
  if (options.json != "-" && options.html != "-")
    fmt::print("{}", toTable(*found));
  auto write = [](const std::string &path, const std::string &text) {
    Status status = path.empty() ? Status() : format::writeFile(path, text);
    if (!status)
      report(status.error());
    return bool(status);
  };
  std::fflush(stdout);
  if (!write(options.json, toJson(*found)) || !write(options.html, toHtml(*found)))
    return WorldError;
  bool anyFailed =
      std::any_of(found->lines.begin(), found->lines.end(), [](const BenchLine &line) { return !line.error.empty(); });
  if (anyFailed)
    fmt::print(stderr, "kpkg: error: some calls failed\n");
  return anyFailed ? InputRefused : Success;
}

} // namespace

void addBench(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("bench", "Time ops of a package against what this machine can do");
  command->footer(
      "Example: kpkg bench gemm.kpkg gemm --input \"a=randn(N,N,f32)\" --input \"b=randn(N,N,f32)\" --sweep N=512,1024 "
      "--html gemm.html\n"
      "Inputs are those of kpkg run. Each op gets the inputs that it has arguments for. The limits are measured in the "
      "same run:\n"
      "a copy of memory, and multiply-adds in registers, on all threads (KPKG_NUM_THREADS) or all of a GPU.");
  auto options = std::make_shared<BenchOptions>();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command->add_option("op,--op", options->ops, "Ops, such as kpkg::gemm or gemm; default: all that take these inputs");
  command->add_option("-i,--input", options->inputs, "An argument, name=value; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--sweep", options->sweeps,
                   "NAME=value,value: what NAME stands for in inputs; may be repeated, for all combinations")
      ->allow_extra_args(false);
  command->add_option("--device", options->device,
                      "cpu, cuda or cuda:N; default: the GPU when there is one and the package has code for it");
  command->add_option("--seed", options->seed, "Seed of random inputs without one of their own")->capture_default_str();
  command
      ->add_option("--repeats", options->repeats, "Samples of each line; fewer when they take more than five seconds")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--require", options->requirement,
                   "Time calls that meet this requirement as well, and print its price in per cent")
      ->check(CLI::IsMember({"deterministic", "batch_invariant", "exact"}));
  command->add_option("--json", options->json,
                      "Write the figures as JSON; - is standard output, in place of the table");
  command->add_option("--html", options->html, "Write a page with a roofline; - as above");
  command->callback([options, &exitCode] { exitCode = run(*options); });
}

} // namespace kpkg::command
