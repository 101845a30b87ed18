// `kpkg profile`: calls an op of a package on inputs from text, and prints the times of its kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/OutputFile.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/RequestedCall.h"
#include "tools/kpkg/bench/DeviceLimits.h"
#include "tools/kpkg/profile/ProfileReport.h"
#include <fmt/format.h>

namespace kpkg::command {

namespace {

struct ProfileOptions {
  CallRequest request;
  int calls = 20;
  bool ranges = false;
  bool events = false;
  bool limits = false;
  std::string trace;
  std::string json;
};

/// Returns the records of kpkg_profile_stop for the calls. One call before them loads the code.
Result<std::string> record(const RequestedCall &requested, const ProfileOptions &options) {
  const Place &place = requested.place;
  auto call = [&]() -> Status {
    auto results = requested.op.call(place.stream, {}, requested.placed);
    return results ? Status() : Status(results.error());
  };
  auto wait = [&]() -> Status { return place.isCuda() ? place.stream.synchronize() : Status(); };
  Status status = call();
  if (status)
    status = wait();
  if (!status)
    return status.error();
  if (kpkg_profile_start((options.ranges ? KPKG_PROFILE_RANGES : 0) | (options.events ? KPKG_PROFILE_EVENTS : 0)) !=
      KPKG_OK)
    return Error::last();
  for (int i = 0; i < options.calls && status; ++i)
    status = call();
  if (status)
    status = wait();
  kpkg_string *text = nullptr;
  if (kpkg_profile_stop(&text) != KPKG_OK)
    return Error::last();
  std::string records(kpkg_string_data(text), kpkg_string_size(text));
  kpkg_string_free(text);
  if (!status)
    return status.error();
  return records;
}

ExitCode run(const ProfileOptions &options) {
  auto call = RequestedCall::prepare(options.request);
  if (!call)
    return report(call.error());
  auto text = record(*call, options);
  if (!text)
    return report(text.error());
  std::optional<double> bytesPerSecond;
  if (options.limits) {
    auto limits = bench::measureLimits(call->place, {});
    if (!limits)
      return report(limits.error());
    bytesPerSecond = limits->copy.perSecond;
  }
  nlohmann::json records = nlohmann::json::parse(*text);
  if (options.json != "-" && options.trace != "-")
    fmt::print("device    {}\n\n{}", call->placeText(), profile::toTables(records, bytesPerSecond));
  std::fflush(stdout);
  auto write = [](const std::string &path, const std::string &content) {
    Status status = path.empty() ? Status() : format::writeFile(path, content);
    if (!status)
      report(status.error());
    return bool(status);
  };
  return write(options.json, *text + "\n") && write(options.trace, profile::toChromeTrace(records)) ? Success
                                                                                                    : WorldError;
}

} // namespace

void addProfile(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("profile", "Call an op of a package, and say what its kernels took");
  command->footer(
      "Example: kpkg profile softmax.kpkg softmax --input \"input=randn(512,4096,f32)\" --trace softmax.json\n"
      "Inputs are those of kpkg run. The trace opens in https://ui.perfetto.dev. Times on a GPU are CUPTI's where it "
      "is found, else between\nevents; "
      "recording costs the host some microseconds a launch: kpkg bench times calls. For a whole Python program: python "
      "-m kpkg profile script.py");
  auto options = std::make_shared<ProfileOptions>();
  command->add_option("package", options->request.package, "The .kpkg file")->required();
  command->add_option("op,--op", options->request.op, "The op, such as kpkg::gemm or gemm")->required();
  command->add_option("-i,--input", options->request.inputs, "An argument, name=value; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--device", options->request.device,
                      "cpu, cuda or cuda:N; default: the GPU when there is one and the package has code for it");
  command->add_option("--seed", options->request.seed, "Seed of random inputs without one of their own")
      ->capture_default_str();
  command->add_option("--calls", options->calls, "Recorded calls, after one that loads the code")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_flag("--limits", options->limits, "Measure the device's bandwidth too, for each kernel's share of it");
  command->add_flag("--ranges", options->ranges, "Make each call a range for NVTX tools such as Nsight Systems");
  command->add_flag("--events", options->events, "Time kernels on a GPU by events even where CUPTI could");
  command->add_option("--trace", options->trace,
                      "Write a trace for Perfetto; - is standard output, in place of the tables");
  command->add_option("--json", options->json, "Write the records as JSON; - as above");
  command->callback([options, &exitCode] { exitCode = run(*options); });
}

} // namespace kpkg::command
