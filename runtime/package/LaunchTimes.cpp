// Times launches on GPUs during a profile: by CUPTI, else by a pair of events around each launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/LaunchTimes.h"

#include <atomic>

namespace kpkg::package {

void LaunchTimes::start(uint64_t (*clock)(), bool events) {
  forget();
  std::lock_guard guard(lock);
  now = clock;
  onlyEvents = events;
  // Starting CUPTI takes time. If GPU calls are likely, it starts here instead of during a call.
  if (cuda::loadCounts().loads)
    choose();
}

void LaunchTimes::forget() {
  std::lock_guard guard(lock);
  chosen = Method::None;
  refusal.clear();
  kernels.clear();
  meetings.clear();
  streams.clear();
}

/// Chooses the method at the first launch on a GPU, because a profile of CPU calls must not load CUPTI.
void LaunchTimes::choose() {
  if (chosen != Method::None)
    return;
  chosen = Method::Events;
  if (onlyEvents)
    return;
  if (Status status = cuda::startActivity(); !status) {
    refusal = status.error().message;
    return;
  }
  activityBegin = now();
  chosen = Method::Cupti;
}

/// Returns an event that is recorded on the stream; nothing if the driver fails.
static std::optional<cuda::Event> recordedEvent(void *stream) {
  auto event = cuda::Event::create();
  if (!event || !event->record(stream))
    return std::nullopt;
  return std::move(*event);
}

/// Synchronises the clocks of host and GPU at the first launch on each GPU.
void LaunchTimes::meet(int32_t device, void *stream) {
  if (meetings.contains(device))
    return;
  auto event = recordedEvent(stream);
  if (event && cuda::synchronize(stream))
    meetings.try_emplace(device, Meeting{std::move(*event), now()});
}

void LaunchTimes::enter(TimedLaunch &launch, int32_t device, void *stream) {
  auto capturing = cuda::isCapturing(stream);
  if (!capturing || *capturing)
    return;
  launch.device = device;
  launch.stream = stream;
  Method method;
  {
    std::lock_guard guard(lock);
    choose();
    method = chosen;
    streams.emplace(device, stream);
    if (method == Method::Events)
      meet(device, stream);
  }
  if (method == Method::Cupti) {
    static std::atomic<uint64_t> next = 1; // never reused: records may arrive late
    launch.identifier = next.fetch_add(1, std::memory_order_relaxed);
    launch.scope = std::make_unique<cuda::ActivityScope>(launch.identifier);
  } else {
    launch.first = recordedEvent(stream);
  }
}

void LaunchTimes::leave(TimedLaunch &launch) {
  launch.scope.reset();
  if (launch.first)
    launch.last = recordedEvent(launch.stream);
}

void LaunchTimes::finish() {
  std::lock_guard guard(lock);
  for (auto [device, stream] : streams) {
    cuda::DeviceScope scope(device);
    // Errors of a kernel are reported by the user's next call, not here.
    if (scope.status())
      (void)cuda::synchronize(stream);
  }
  if (chosen == Method::Cupti)
    kernels = cuda::stopActivity();
}

std::optional<std::pair<int64_t, int64_t>> LaunchTimes::times(const TimedLaunch &launch) const {
  if (launch.identifier) {
    auto kernel = kernels.find(launch.identifier);
    if (kernel == kernels.end())
      return std::nullopt;
    return std::pair(int64_t(activityBegin) + kernel->second.startNs, kernel->second.durationNs);
  }
  auto meeting = meetings.find(launch.device);
  if (!launch.first || !launch.last || meeting == meetings.end())
    return std::nullopt;
  auto since = launch.first->secondsSince(meeting->second.event), length = launch.last->secondsSince(*launch.first);
  if (!since || !length)
    return std::nullopt;
  return std::pair(int64_t(meeting->second.host) + int64_t(*since * 1e9), int64_t(*length * 1e9));
}

} // namespace kpkg::package
