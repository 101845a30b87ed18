// What `kpkg bench` found, and its three forms: a table, JSON and a page.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/bench/DeviceLimits.h"
#include "tools/kpkg/bench/Sweep.h"
#include "tools/kpkg/bench/Timing.h"
#include <optional>

namespace kpkg::command::bench {

/// One op on one set of arguments. Text in it comes from the package or the command line and may be hostile.
struct BenchLine {
  std::string op;
  /// As on the command line, with the names of the sweep replaced.
  std::vector<std::string> inputs;
  SweepPoint point;
  /// Why the call failed; then nothing below is set.
  std::string error;
  /// Widest floating-point dtype of the tensor arguments, for the arithmetic limit; None when there is none.
  DType dtype = DType::None;
  /// Kernel instances that ran, each once.
  std::vector<std::string> instances;
  /// Copies that the op made before its kernels could run; their traffic is not in `bytes`.
  uint64_t copies = 0;
  uint64_t copiedBytes = 0;
  /// The package's estimates; 0 when it has none.
  double flops = 0;
  double bytes = 0;
  bool allocates = false;
  Samples seconds;
};

struct BenchReport {
  std::string package;
  /// UTC, "2026-11-21T04:20:43Z"
  std::string date;
  /// Why it ran where it did, where nobody chose; else empty.
  std::string placeNote;
  DeviceLimits limits;
  std::vector<BenchLine> lines;
};

/// Where a line stands under the roofline. Nothing has a value where the line failed or lacks an estimate.
struct Placement {
  std::optional<double> bytesPerSecond;
  std::optional<double> flopsPerSecond;
  /// FLOP per byte.
  std::optional<double> intensity;
  /// The least time that the limits allow, and its share of the median: 1 is the limit itself.
  std::optional<double> limitSeconds;
  std::optional<double> share;
  /// Which of the two limits it is.
  bool isMemoryBound = false;
};
Placement place(const BenchLine &line, const DeviceLimits &limits);

/// A line's columns for people; "-" where there is no value.
struct LineText {
  std::string op, inputs, time, spread, bytesRate, flopRate, intensity, share, bound, instances;
};
LineText describe(const BenchLine &line, const DeviceLimits &limits);

/// "28.5 GB/s" for a rate of `unit` "B", "1.02 TFLOP/s" for "FLOP".
std::string formatRate(double perSecond, const char *unit);

/// What the figures mean; one sentence each.
std::vector<std::string> notes(const BenchReport &report);

/// Aligned columns. Control characters are replaced, so that the text cannot steer a terminal.
std::string toTable(const BenchReport &report);
/// Its keys are described in docs/bench.md.
std::string toJson(const BenchReport &report);
/// One file that needs nothing from outside and runs no script.
std::string toHtml(const BenchReport &report);
/// The <svg> element of the page; "" when no line has both a count of operations and of bytes.
std::string toSvg(const BenchReport &report);
/// Which of the page's six colours an op has; the seventh op has the first one again, so colour never stands alone.
size_t colourOf(const BenchReport &report, const BenchLine &line);
/// Text as content of an element or as value of a quoted attribute.
std::string escapeHtml(std::string_view text);

} // namespace kpkg::command::bench
