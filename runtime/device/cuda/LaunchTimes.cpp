// Times launches on GPUs during a profile: by CUPTI, else by a pair of events around each launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/LaunchTimes.h"

#include <atomic>

namespace kpkg::cuda {

struct LaunchTimes::Timed : device::TimedLaunch {
  int32_t device = -1;
  Stream stream = nullptr;
  uint64_t identifier = 0; ///< of CUPTI; 0 if there is none
  std::unique_ptr<ActivityScope> scope;
  std::optional<Event> first, last;
};

void LaunchTimes::start(uint64_t (*clock)(), bool events) {
  forget();
  std::lock_guard guard(lock);
  now = clock;
  onlyEvents = events;
  // Starting CUPTI takes time. If GPU calls are likely, it starts here instead of during a call.
  if (loadCounts().loads)
    choose();
}

void LaunchTimes::forget() {
  std::lock_guard guard(lock);
  chosen = Source::None;
  refusal.clear();
  kernels.clear();
  meetings.clear();
  streams.clear();
}

/// Chooses the method at the first launch on a GPU, because a profile of CPU calls must not load CUPTI.
void LaunchTimes::choose() {
  if (chosen != Source::None)
    return;
  chosen = Source::Events;
  if (onlyEvents)
    return;
  if (Status status = startActivity(); !status) {
    refusal = status.error().message;
    return;
  }
  activityBegin = now();
  chosen = Source::Cupti;
}

/// Returns an event that is recorded on the stream; nothing if the driver fails.
static std::optional<Event> recordedEvent(Stream stream) {
  auto event = Event::create();
  if (!event || !event->record(stream))
    return std::nullopt;
  return std::move(*event);
}

/// Synchronises the clocks of host and GPU at the first launch on each GPU.
void LaunchTimes::meet(int32_t device, Stream stream) {
  if (meetings.contains(device))
    return;
  auto event = recordedEvent(stream);
  if (event && synchronize(stream))
    meetings.try_emplace(device, Meeting{std::move(*event), now()});
}

std::unique_ptr<device::TimedLaunch> LaunchTimes::begin(int32_t device, device::Stream stream) {
  auto capturing = isCapturing(stream);
  if (!capturing || *capturing)
    return nullptr;
  auto launch = std::make_unique<Timed>();
  launch->device = device;
  launch->stream = stream;
  Source source;
  {
    std::lock_guard guard(lock);
    choose();
    source = chosen;
    streams.emplace(device, stream);
    if (source == Source::Events)
      meet(device, stream);
  }
  if (source == Source::Cupti) {
    static std::atomic<uint64_t> next = 1; // never reused: records may arrive late
    launch->identifier = next.fetch_add(1, std::memory_order_relaxed);
    launch->scope = std::make_unique<ActivityScope>(launch->identifier);
  } else {
    launch->first = recordedEvent(stream);
  }
  return launch;
}

void LaunchTimes::end(device::TimedLaunch &timed) {
  auto &launch = static_cast<Timed &>(timed);
  launch.scope.reset();
  if (launch.first)
    launch.last = recordedEvent(launch.stream);
}

void LaunchTimes::finish() {
  std::lock_guard guard(lock);
  for (auto [device, stream] : streams) {
    DeviceScope scope(device);
    // Errors of a kernel are reported by the user's next call, not here.
    if (scope.status())
      (void)synchronize(stream);
  }
  if (chosen == Source::Cupti)
    kernels = stopActivity();
}

std::optional<std::pair<int64_t, int64_t>> LaunchTimes::times(const device::TimedLaunch &timed) const {
  const auto &launch = static_cast<const Timed &>(timed);
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

std::optional<device::Profiler::Method> LaunchTimes::method() const {
  if (streams.empty())
    return std::nullopt;
  return chosen == Source::Cupti ? Method{"cupti", std::nullopt} : Method{"events", refusal};
}

} // namespace kpkg::cuda
