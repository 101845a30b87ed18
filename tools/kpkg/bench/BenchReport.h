// The results of `kpkg bench`, and their three formats: a table, JSON and a page.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/bench/DeviceLimits.h"
#include "tools/kpkg/bench/Sweep.h"
#include "tools/kpkg/bench/Timing.h"
#include <optional>

namespace kpkg::command::bench {

/// One op on one set of arguments. Its texts come from the package or the command line, and are not trusted.
struct BenchLine {
  std::string op;
  /// As on the command line, with the names of the sweep replaced.
  std::vector<std::string> inputs;
  SweepPoint point;
  /// Why the call failed; then the following fields are not set.
  std::string error;
  /// Widest floating-point dtype of the tensor arguments, for the arithmetic limit; None if there is none.
  DType dtype = DType::None;
  /// The distinct kernel instances that ran.
  std::vector<std::string> instances;
  /// Copies that the op made before its kernels could run. Their traffic is not in `bytes`.
  uint64_t copies = 0;
  uint64_t copiedBytes = 0;
  /// The package's estimates; 0 if it has none.
  double flops = 0;
  double bytes = 0;
  bool allocates = false;
  Samples seconds;
  /// The median of calls that meet the report's requirement.
  std::optional<double> requiredSeconds;
};

struct BenchReport {
  std::string package;
  /// UTC, "2026-11-21T04:20:43Z"
  std::string date;
  /// The reason for the place, unless it was requested; else empty.
  std::string placeNote;
  /// The requirement whose price is measured, a word of KPKG_REQUIRE; empty: none.
  std::string requirement;
  DeviceLimits limits;
  std::vector<BenchLine> lines;
};

/// The position of a line relative to the roofline. Fields are empty if the line failed or lacks an estimate.
struct Placement {
  std::optional<double> bytesPerSecond;
  std::optional<double> flopsPerSecond;
  /// FLOP per byte.
  std::optional<double> intensity;
  /// The minimum time that the limits allow, and its share of the median. 1 is the limit itself.
  std::optional<double> limitSeconds;
  std::optional<double> share;
  /// Which of the two limits applies.
  bool isMemoryBound = false;
};
Placement place(const BenchLine &line, const DeviceLimits &limits);

/// A line's columns for people; "-" for a missing value.
struct LineText {
  std::string op, inputs, time, spread, bytesRate, flopRate, intensity, share, bound, instances;
};
LineText describe(const BenchLine &line, const DeviceLimits &limits);

/// Returns by how many per cent the requirement makes calls longer; empty without one, or if the line failed.
std::optional<double> priceOf(const BenchLine &line);

/// Returns "28.5 GB/s" for a rate of `unit` "B", "1.02 TFLOP/s" for "FLOP".
std::string formatRate(double perSecond, const char *unit);

/// Returns explanations of the figures, one sentence each.
std::vector<std::string> notes(const BenchReport &report);

/// Returns aligned columns, without terminal control sequences.
std::string toTable(const BenchReport &report);
/// Returns JSON, whose keys docs/bench.md describes.
std::string toJson(const BenchReport &report);
/// Returns one self-contained file without scripts.
std::string toHtml(const BenchReport &report);
/// Returns the <svg> element of the page; "" if no line has both operations and bytes.
std::string toSvg(const BenchReport &report);
/// Returns which of the page's six colours an op has. The seventh op has the first colour again, so colour is never the
/// only distinction.
size_t colourOf(const BenchReport &report, const BenchLine &line);
/// Escapes text for the content of an element or for a quoted attribute.
std::string escapeHtml(std::string_view text);

} // namespace kpkg::command::bench
