// Writes a benchmark as a table on a terminal, and as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/bench/BenchReport.h"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kpkg::command::bench {

namespace {

using nlohmann::ordered_json;

std::string withoutControls(std::string text) {
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return text;
}

template <typename T> ordered_json orNull(const std::optional<T> &value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json lineJson(const BenchLine &line, const DeviceLimits &limits, const std::string &requirement) {
  ordered_json record = {{"op", line.op}, {"inputs", line.inputs}, {"sweep", ordered_json::object()}};
  for (const auto &[name, value] : line.point)
    record["sweep"][name] = value;
  if (!line.error.empty()) {
    record["error"] = line.error;
    return record;
  }
  Placement placement = place(line, limits);
  record["dtype"] = line.dtype == DType::None ? ordered_json() : ordered_json(kpkg_dtype_name(int32_t(line.dtype)));
  record["instances"] = line.instances;
  record["seconds"] = {{"median", line.seconds.median},
                       {"p10", line.seconds.p10},
                       {"p90", line.seconds.p90},
                       {"samples", line.seconds.count},
                       {"calls_per_sample", line.seconds.callsPerSample}};
  if (!requirement.empty())
    record["required"] = {{"requirement", requirement},
                          {"median", orNull(line.requiredSeconds)},
                          {"price_percent", orNull(priceOf(line))}};
  record["allocates"] = line.allocates;
  record["flops"] = line.flops;
  record["bytes"] = line.bytes;
  record["copies"] = line.copies;
  record["copied_bytes"] = line.copiedBytes;
  record["flops_per_second"] = orNull(placement.flopsPerSecond);
  record["bytes_per_second"] = orNull(placement.bytesPerSecond);
  record["intensity"] = orNull(placement.intensity);
  record["limit_seconds"] = orNull(placement.limitSeconds);
  record["share"] = orNull(placement.share);
  record["bound"] = placement.share ? ordered_json(placement.isMemoryBound ? "memory" : "arithmetic") : ordered_json();
  return record;
}

} // namespace

std::string toTable(const BenchReport &report) {
  std::string text = "device    " + withoutControls(report.limits.device) + "\n";
  text += fmt::format("copy      {}: {}\n", formatRate(report.limits.copy.perSecond, "B"), report.limits.copy.how);
  for (const ArithmeticLimit &limit : report.limits.arithmetic)
    text += fmt::format("{:<9} {}: {}\n", kpkg_dtype_name(int32_t(limit.dtype)),
                        formatRate(limit.flops.perSecond, "FLOP"), limit.flops.how);
  text += "\n";

  using Row = std::array<std::string, 10>;
  std::vector<Row> rows = {
      {"op", "inputs", "time", "10% .. 90%", "traffic", "compute", "FLOP/B", "of limit", "bound", "instances"}};
  for (const BenchLine &line : report.lines) {
    LineText columns = describe(line, report.limits);
    rows.push_back({columns.op, columns.inputs, columns.time, columns.spread, columns.bytesRate, columns.flopRate,
                    columns.intensity, columns.share, columns.bound, columns.instances});
  }
  std::array<size_t, 10> widths = {};
  for (Row &row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = withoutControls(std::move(row[i]));
      widths[i] = std::max(widths[i], row[i].size());
    }
  for (const Row &row : rows) {
    std::string line;
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      bool isNumber = i >= 2 && i <= 7;
      line += isNumber ? fmt::format("{:>{}}  ", row[i], widths[i]) : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    text += line + row.back() + "\n";
  }
  text += "\n";
  for (const std::string &note : notes(report))
    text += withoutControls(note) + "\n";
  return text;
}

std::string toJson(const BenchReport &report) {
  auto limitJson = [](const Limit &limit) { return ordered_json{{"per_second", limit.perSecond}, {"how", limit.how}}; };
  ordered_json record = {{"format", 1}, {"kpkg", kpkg_version()}, {"package", report.package}, {"date", report.date}};
  record["limits"] = {{"device", report.limits.device},
                      {"copy_bytes", limitJson(report.limits.copy)},
                      {"flops", ordered_json::object()}};
  for (const ArithmeticLimit &limit : report.limits.arithmetic)
    record["limits"]["flops"][kpkg_dtype_name(int32_t(limit.dtype))] = limitJson(limit.flops);
  record["lines"] = ordered_json::array();
  for (const BenchLine &line : report.lines)
    record["lines"].push_back(lineJson(line, report.limits, report.requirement));
  return record.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace kpkg::command::bench
