// Formats a recorded profile: tables per op and per kernel, and a trace for Perfetto.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace kpkg::command::profile {

/// Returns two tables. The first has each op with its calls and times. The second has each kernel instance and device
/// with calls, times and rates by the package's estimates. It also has the share of `bytesPerSecond`, the device's
/// bandwidth, if that was measured.
///
/// Times are sums over all calls, and the longest row is first. Rates are over the time on the GPU; on the CPU, over
/// that of the launch. `records` is the result of kpkg_profile_stop.
std::string toTables(const nlohmann::json &records, std::optional<double> bytesPerSecond);

/// Returns a trace for https://ui.perfetto.dev and chrome://tracing: calls and launches by thread, kernels by device
/// and stream.
std::string toChromeTrace(const nlohmann::json &records);

} // namespace kpkg::command::profile
