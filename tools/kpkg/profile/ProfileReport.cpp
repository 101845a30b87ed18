// Formats a recorded profile: tables per op and per kernel, and a trace for Perfetto.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/profile/ProfileReport.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <unistd.h>
#include <vector>

namespace kpkg::command::profile {

namespace {

using nlohmann::json;

struct Row {
  std::string name, device;
  int calls = 0, fallbacks = 0;
  double hostUs = 0, bytes = 0, flops = 0;
  std::optional<double> deviceUs;

  /// Returns the microseconds for rates; 0 if a GPU did not report its time.
  double busyUs() const { return deviceUs ? *deviceUs : device == "cpu" ? hostUs : 0; }
  double weight() const { return deviceUs ? *deviceUs : hostUs; }

  void addLaunch(const json &launch) {
    bytes += launch["bytes"].get<double>();
    flops += launch["flops"].get<double>();
    if (!launch["device_duration_ns"].is_null())
      deviceUs = deviceUs.value_or(0) + launch["device_duration_ns"].get<double>() * 1e-3;
  }
};

std::vector<Row> longestFirst(const std::map<std::string, Row> &rows) {
  std::vector<Row> sorted;
  for (const auto &[key, row] : rows)
    sorted.push_back(row);
  std::sort(sorted.begin(), sorted.end(), [](const Row &a, const Row &b) {
    return a.weight() != b.weight() ? a.weight() > b.weight() : a.name < b.name;
  });
  return sorted;
}

std::string number(std::optional<double> value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "";
}

json event(const json &name, const char *category, int process, int64_t thread, const json &start, const json &duration,
           json arguments) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"pid", process},
          {"tid", thread},
          {"ts", start.get<double>() * 1e-3},
          {"dur", duration.get<double>() * 1e-3},
          {"args", std::move(arguments)}};
}

json name(const char *what, int process, int64_t thread, const std::string &text) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", text}}}};
}

} // namespace

std::string toTables(const json &records, std::optional<double> bytesPerSecond) {
  std::map<std::string, Row> ops, kernels;
  for (const json &call : records["calls"]) {
    Row &row = ops[call["op"]];
    row.name = call["op"];
    ++row.calls;
    row.hostUs += call["duration_ns"].get<double>() * 1e-3;
    row.fallbacks += call["fell_back"].get<bool>() ? 1 : 0;
  }
  for (const json &launch : records["launches"]) {
    if (auto op = ops.find(launch["op"]); op != ops.end())
      op->second.addLaunch(launch);
    Row &row = kernels[launch["instance"].get<std::string>() + "\n" + launch["device"].get<std::string>()];
    row.name = launch["instance"];
    row.device = launch["device"];
    ++row.calls;
    row.hostUs += launch["duration_ns"].get<double>() * 1e-3;
    row.addLaunch(launch);
  }
  std::string text =
      fmt::format("{:40} {:>7} {:>10} {:>10} {:>9}\n", "op", "calls", "host us", "device us", "fallbacks");
  for (const Row &row : longestFirst(ops))
    text += fmt::format("{:40} {:>7} {:>10.1f} {:>10} {:>9}\n", row.name, row.calls, row.hostUs,
                        number(row.deviceUs, 1), row.fallbacks);
  text += fmt::format("\n{:>7} {:>10} {:>10} {:>8} {:>9} {:>6}  kernel\n", "calls", "host us", "device us", "GB/s",
                      "GFLOP/s", "limit");
  for (const Row &row : longestFirst(kernels)) {
    std::optional<double> gbs, gflops;
    if (double us = row.busyUs(); us > 0) {
      gbs = row.bytes / us * 1e-3;
      gflops = row.flops / us * 1e-3;
    }
    std::string share = bytesPerSecond && gbs ? fmt::format("{:.0f}%", *gbs * 1e9 / *bytesPerSecond * 100) : "";
    text += fmt::format("{:>7} {:>10.1f} {:>10} {:>8} {:>9} {:>6}  {} ({})\n", row.calls, row.hostUs,
                        number(row.deviceUs, 1), number(gbs, 1), number(gflops, 1), share, row.name, row.device);
  }
  if (const json &times = records["device_times"]; !times.is_null()) {
    if (times["by"] == "cupti")
      text += "device times are those of the kernels themselves, by CUPTI\n";
    else if (std::string reason = times["reason"]; reason.empty())
      text += "device times are between events around each launch, some microseconds longer than the kernel alone\n";
    else
      text += fmt::format(
          "device times are between events around each launch, some microseconds longer than the kernel alone ({})\n",
          reason);
  }
  if (int64_t dropped = records["dropped"].get<int64_t>())
    text += fmt::format("{} records more than are kept were dropped\n", dropped);
  return text;
}

std::string toChromeTrace(const json &records) {
  int host = int(getpid());
  json events = json::array();
  std::map<std::string, int> devices;
  std::map<std::pair<std::string, uint64_t>, int64_t> streams;
  std::set<int64_t> threads;
  events.push_back(name("process_name", host, 0, "host"));
  for (const json &call : records["calls"]) {
    int64_t thread = call["thread"].get<int64_t>();
    if (threads.insert(thread).second)
      events.push_back(name("thread_name", host, thread, fmt::format("thread {}", thread)));
    events.push_back(event(call["op"], "op", host, thread, call["start_ns"], call["duration_ns"],
                           {{"ok", call["ok"]}, {"fell_back", call["fell_back"]}}));
  }
  for (const json &launch : records["launches"]) {
    json arguments = {
        {"op", launch["op"]}, {"target", launch["target"]}, {"bytes", launch["bytes"]}, {"flops", launch["flops"]}};
    events.push_back(event(launch["instance"], "launch", host, launch["thread"].get<int64_t>(), launch["start_ns"],
                           launch["duration_ns"], arguments));
    if (launch["device_start_ns"].is_null())
      continue;
    std::string device = launch["device"];
    uint64_t handle = launch["stream"].get<uint64_t>();
    auto [process, isNewDevice] = devices.try_emplace(device, host + 1 + int(devices.size()));
    auto [stream, isNewStream] = streams.try_emplace({device, handle}, 1 + int64_t(streams.size()));
    if (isNewDevice)
      events.push_back(name("process_name", process->second, 0, device));
    if (isNewStream)
      events.push_back(name("thread_name", process->second, stream->second, fmt::format("stream {:#x}", handle)));
    events.push_back(event(launch["instance"], "kernel", process->second, stream->second, launch["device_start_ns"],
                           launch["device_duration_ns"], arguments));
  }
  return json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump() + "\n";
}

} // namespace kpkg::command::profile
