// Times work on a GPU: events around each call, with the previous call's data flushed from the caches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Devices.h"
#include "tools/kpkg/bench/Timing.h"
#include <algorithm>
#include <chrono>

namespace kpkg::command::bench {

namespace {

constexpr double MaxSeconds = 5;
constexpr int MinSamples = 3;
/// Keeps a GPU busy for longer than the host takes to queue a call, so that the host's time is hidden.
constexpr int64_t MinFlushBytes = int64_t(128) << 20;

/// Flushes the caches.
class Flush {
public:
  static Result<Flush> prepare(const Place &place) {
    auto info = describeDevice(place.device);
    if (!info)
      return info.error();
    int64_t bytes = std::max(MinFlushBytes, 2 * int64_t(info->cache_bytes));
    auto memory = Tensor::empty(DType::UInt8, {2, bytes}, place.device, place.stream);
    if (!memory)
      return memory.error();
    return Flush(std::move(*memory));
  }
  Status queue(const Place &place) const {
    size_t bytes = size_t(memory.shape()[1]);
    return Status::from(kpkg_memory_copy(place.device, memory.as<char>() + bytes, place.device, memory.data(), bytes,
                                         place.stream.handle));
  }

private:
  explicit Flush(Tensor memory) : memory(std::move(memory)) {}
  Tensor memory;
};

struct Interval {
  std::unique_ptr<device::Event> start, end;
};

Result<Interval> timeOnce(device::Device &device, const Place &place, const std::function<Status()> &call,
                          const Flush &flush) {
  auto start = device.createEvent(), end = device.createEvent();
  if (!start || !end)
    return start ? end.error() : start.error();
  Status status = flush.queue(place);
  if (status)
    status = (*start)->record(place.stream.handle);
  if (status)
    status = call();
  if (status)
    status = (*end)->record(place.stream.handle);
  if (!status)
    return status.error();
  return Interval{std::move(*start), std::move(*end)};
}

} // namespace

Result<std::vector<double>> sampleOnGpu(const Place &place, const std::function<Status()> &call, int repeats) {
  auto device = package::findDevice(place.device);
  if (!device)
    return device.error();
  device::Scope scope(**device);
  if (!scope.ok())
    return scope.error();
  auto flush = Flush::prepare(place);
  if (!flush)
    return flush.error();
  constexpr int warmups = 2;
  std::vector<double> seconds;
  auto begin = std::chrono::steady_clock::now();
  auto isLate = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > MaxSeconds;
  };
  for (int i = -warmups; i < repeats && (i < MinSamples || !isLate()); ++i) {
    auto interval = timeOnce(**device, place, call, *flush);
    if (!interval)
      return interval.error();
    if (Status status = place.stream.synchronize(); !status)
      return status.error();
    auto time = interval->end->secondsSince(*interval->start);
    if (!time)
      return time.error();
    if (i >= 0)
      seconds.push_back(std::max(*time, 1e-9));
  }
  return seconds;
}

} // namespace kpkg::command::bench
