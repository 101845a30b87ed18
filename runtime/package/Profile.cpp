// Records calls and launches during a profile, and returns them as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Profile.h"
#include "runtime/package/Devices.h"
#include "runtime/package/ForkSafeMutex.h"
#include "runtime/package/Ranges.h"

#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace kpkg::package {

namespace {

/// Limit of records, so that a profile that is never stopped does not exhaust memory. Later ones are only counted.
constexpr size_t keptRecords = 1 << 20;

struct CallRecord {
  std::string op;
  uint32_t thread;
  uint64_t begin, end;
  bool succeeded, fellBack;
};

struct LaunchRecord {
  std::string op;
  /// Copied, because the package may be closed before the profile ends.
  std::string instance, target;
  Cost cost;
  std::string device;
  void *stream = nullptr; ///< of a device with a profiler
  uint32_t thread;
  uint64_t begin, end;
  device::Profiler *profiler = nullptr;
  std::unique_ptr<device::TimedLaunch> timed; ///< null: not timed on the device
};

struct Profile {
  ForkSafeMutex lock;
  std::chrono::steady_clock::time_point start;
  bool ranges = false;
  std::vector<CallRecord> calls;
  std::vector<LaunchRecord> launches;
  uint64_t dropped = 0;
};

Profile &profile() {
  static auto *instance = new Profile; // never destroyed: threads may outlive static objects
  return *instance;
}

uint64_t now() {
  return uint64_t(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - profile().start).count());
}

uint32_t threadNumber() {
  static std::atomic<uint32_t> next = 1;
  thread_local uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

} // namespace

Status startProfile(bool ranges, bool onlyEvents) {
  if (ranges)
    if (Status status = openRanges(); !status)
      return status;
  Profile &taken = profile();
  std::lock_guard guard(taken.lock);
  taken.calls.clear();
  taken.launches.clear();
  taken.dropped = 0;
  taken.ranges = ranges;
  taken.start = std::chrono::steady_clock::now();
  for (device::Driver *driver : drivers())
    if (device::Profiler *profiler = driver->profiler())
      profiler->start(now, onlyEvents);
  setObserver(Profiling, true);
  return {};
}

ProfiledCall::ProfiledCall(const std::string &op) : op(op), begin(now()), hasRange(profile().ranges) {
  if (hasRange)
    pushRange(op.c_str());
}

ProfiledCall::~ProfiledCall() {
  if (hasRange)
    popRange();
}

void ProfiledCall::finish(bool succeeded, bool fellBack) {
  Profile &taken = profile();
  uint64_t end = now();
  std::lock_guard guard(taken.lock);
  if (taken.calls.size() < keptRecords)
    taken.calls.push_back({op, threadNumber(), begin, end, succeeded, fellBack});
  else
    ++taken.dropped;
}

struct ProfiledLaunch::State {
  LaunchRecord record;
};

ProfiledLaunch::ProfiledLaunch(const std::string &op, const PlannedLaunch &launch, device::Device &device, void *stream)
    : state(std::make_unique<State>()) {
  LaunchRecord &record = state->record;
  record.op = op;
  record.instance = launch.instance->label;
  record.target = launch.instance->target;
  record.cost = launch.cost;
  record.thread = threadNumber();
  record.device = device.driver().deviceName(device.index());
  if (device::Profiler *profiler = device.driver().profiler()) {
    record.profiler = profiler;
    record.stream = stream;
    record.timed = profiler->begin(device.index(), stream);
  }
  record.begin = now();
}

ProfiledLaunch::~ProfiledLaunch() {
  LaunchRecord &record = state->record;
  record.end = now();
  Profile &taken = profile();
  if (record.timed)
    record.profiler->end(*record.timed);
  std::lock_guard guard(taken.lock);
  if (taken.launches.size() < keptRecords)
    taken.launches.push_back(std::move(record));
  else
    ++taken.dropped;
}

std::string stopProfile() {
  using nlohmann::ordered_json;
  setObserver(Profiling, false);
  Profile &taken = profile();
  std::lock_guard guard(taken.lock);
  for (device::Driver *driver : drivers())
    if (device::Profiler *profiler = driver->profiler())
      profiler->finish();
  ordered_json record;
  record["dropped"] = taken.dropped;
  record["calls"] = ordered_json::array();
  for (const CallRecord &call : taken.calls)
    record["calls"].push_back({{"op", call.op},
                               {"thread", call.thread},
                               {"start_ns", call.begin},
                               {"duration_ns", call.end - call.begin},
                               {"ok", call.succeeded},
                               {"fell_back", call.fellBack}});
  record["launches"] = ordered_json::array();
  for (const LaunchRecord &launch : taken.launches) {
    auto times = launch.timed ? launch.profiler->times(*launch.timed) : std::nullopt;
    ordered_json entry = {{"op", launch.op},
                          {"instance", launch.instance},
                          {"target", launch.target},
                          {"device", launch.device},
                          {"stream", uint64_t(reinterpret_cast<uintptr_t>(launch.stream))},
                          {"thread", launch.thread},
                          {"start_ns", launch.begin},
                          {"duration_ns", launch.end - launch.begin},
                          {"flops", launch.cost.flops},
                          {"bytes", launch.cost.bytes}};
    entry["device_start_ns"] = times ? ordered_json(times->first) : ordered_json(nullptr);
    entry["device_duration_ns"] = times ? ordered_json(times->second) : ordered_json(nullptr);
    record["launches"].push_back(std::move(entry));
  }
  taken.calls.clear();
  taken.launches.clear();
  record["device_times"] = nullptr;
  for (device::Driver *driver : drivers())
    if (device::Profiler *profiler = driver->profiler()) {
      if (auto method = profiler->method()) {
        record["device_times"] = {{"by", method->name}};
        if (method->reason)
          record["device_times"]["reason"] = *method->reason;
      }
      profiler->forget();
    }
  return record.dump();
}

} // namespace kpkg::package
