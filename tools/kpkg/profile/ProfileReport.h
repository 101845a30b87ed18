// What a recorded profile says: tables per op and per kernel, and a trace for Perfetto.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace kpkg::command::profile {

/// Two tables: for each op its calls and times, for each kernel instance and device its calls, times, rates by the
/// package's estimates, and the share of `bytesPerSecond`, the device's bandwidth, where that was measured. Times are
/// of all calls together, the longest row is first. Rates are over the time on the GPU, on the CPU over that of the
/// launch. `records` is what kpkg_profile_stop gives.
std::string toTables(const nlohmann::json &records, std::optional<double> bytesPerSecond);

/// A trace that https://ui.perfetto.dev and chrome://tracing open: calls and launches by thread, kernels by device and
/// stream.
std::string toChromeTrace(const nlohmann::json &records);

} // namespace kpkg::command::profile
