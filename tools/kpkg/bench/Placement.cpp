// Places lines of a benchmark relative to the roofline, and formats them as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/bench/BenchReport.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kpkg::command::bench {

namespace {

/// Formats three digits: 1.23, 12.3, 123.
std::string threeDigits(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string formatSeconds(double seconds) {
  if (seconds < 1e-3)
    return threeDigits(seconds * 1e6) + " us";
  return seconds < 1 ? threeDigits(seconds * 1e3) + " ms" : threeDigits(seconds) + " s";
}

} // namespace

Placement place(const BenchLine &line, const DeviceLimits &limits) {
  Placement placement;
  if (!line.error.empty())
    return placement;
  double seconds = line.seconds.median;
  double memorySeconds = 0, arithmeticSeconds = 0;
  if (line.bytes > 0) {
    placement.bytesPerSecond = line.bytes / seconds;
    memorySeconds = line.bytes / limits.copy.perSecond;
  }
  const Limit *flops = limits.flopsOf(line.dtype);
  if (line.flops > 0) {
    placement.flopsPerSecond = line.flops / seconds;
    if (flops)
      arithmeticSeconds = line.flops / flops->perSecond;
  }
  if (line.bytes > 0 && line.flops > 0)
    placement.intensity = line.flops / line.bytes;
  // The device can do both concurrently: min(copy rate, arithmetic rate / intensity) as a time.
  if (double least = std::max(memorySeconds, arithmeticSeconds); least > 0) {
    placement.limitSeconds = least;
    placement.share = least / seconds;
    placement.isMemoryBound = memorySeconds >= arithmeticSeconds;
  }
  return placement;
}

std::string formatRate(double perSecond, const char *unit) {
  const char *prefix = "";
  for (const char *next : {"k", "M", "G", "T", "P"}) {
    if (perSecond < 999.5)
      break;
    perSecond /= 1000;
    prefix = next;
  }
  return threeDigits(perSecond) + " " + prefix + unit + "/s";
}

std::optional<double> priceOf(const BenchLine &line) {
  if (!line.requiredSeconds || !(line.seconds.median > 0))
    return std::nullopt;
  return (*line.requiredSeconds / line.seconds.median - 1) * 100;
}

LineText describe(const BenchLine &line, const DeviceLimits &limits) {
  LineText text = {line.op, fmt::format("{}", fmt::join(line.inputs, " ")), "-", "-", "-", "-", "-", "-", "-", ""};
  if (!line.error.empty()) {
    text.instances = "failed: " + line.error;
    return text;
  }
  Placement placement = place(line, limits);
  text.time = formatSeconds(line.seconds.median);
  text.spread = formatSeconds(line.seconds.p10) + " .. " + formatSeconds(line.seconds.p90);
  if (placement.bytesPerSecond)
    text.bytesRate = formatRate(*placement.bytesPerSecond, "B");
  if (placement.flopsPerSecond)
    text.flopRate = formatRate(*placement.flopsPerSecond, "FLOP");
  if (placement.intensity)
    text.intensity = threeDigits(*placement.intensity);
  if (placement.share) {
    text.share = fmt::format("{:.1f}%", *placement.share * 100);
    text.bound = placement.isMemoryBound ? "memory" : "arithmetic";
  }
  text.instances = line.instances.empty() ? "no kernel" : fmt::format("{}", fmt::join(line.instances, "; "));
  if (line.copies)
    text.instances += fmt::format("; {} cop{} of {:.3g} MB", line.copies, line.copies == 1 ? "y" : "ies",
                                  double(line.copiedBytes) * 1e-6);
  return text;
}

std::vector<std::string> notes(const BenchReport &report) {
  std::vector<std::string> notes = {
      "Bytes and operations are the package's own estimates of what its kernels must move and compute. The limit of a "
      "line is the time that "
      "the device, as measured in this run, needs at least for them; the share is that time in percent of the median."};
  if (!report.placeNote.empty())
    notes.push_back(report.placeNote);
  bool isAbove = false, allocates = false, copies = false;
  for (const BenchLine &line : report.lines) {
    isAbove |= place(line, report.limits).share.value_or(0) > 1;
    allocates |= line.allocates;
    copies |= line.copies > 0;
  }
  if (isAbove)
    notes.push_back(
        "A share above 100% means that data stayed in caches, that more is read than written, or that other programs "
        "slowed the copy down: the limit is a copy of memory.");
  if (copies)
    notes.push_back("Copies that an op makes before its kernels count in its time, but not in its bytes.");
  if (allocates)
    notes.push_back("Some results share memory with arguments or are not dense; their ops are timed together with the "
                    "allocation of results.");
  for (const BenchLine &line : report.lines)
    if (auto price = priceOf(line))
      notes.push_back(fmt::format("{} costs {:+.1f} % in {} {}: {} instead of {}.", report.requirement, *price, line.op,
                                  fmt::join(line.inputs, " "), formatSeconds(*line.requiredSeconds),
                                  formatSeconds(line.seconds.median)));
  return notes;
}

} // namespace kpkg::command::bench
