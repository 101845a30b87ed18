// Times launches on GPUs during a profile: by CUPTI, else by a pair of events around each launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_LAUNCHTIMES_H
#define KPKG_PACKAGE_LAUNCHTIMES_H

#include "runtime/device/cuda/Activity.h"
#include "runtime/device/cuda/Event.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

namespace kpkg::package {

/// A GPU launch between `enter` and `leave`, later with the data that identifies its time.
struct TimedLaunch {
  int32_t device = -1;
  void *stream = nullptr;
  uint64_t identifier = 0; ///< of CUPTI; 0 if there is none
  std::unique_ptr<cuda::ActivityScope> scope;
  std::optional<cuda::Event> first, last;

  bool isTimed() const { return identifier || last; }
};

class LaunchTimes {
public:
  enum class Method { None, Cupti, Events };

  /// Forgets all launches. `now` returns the time since the profile's start in nanoseconds. With `onlyEvents`, CUPTI is
  /// not used.
  void start(uint64_t (*now)(), bool onlyEvents);
  /// Called before a launch in the current context. Never makes a call fail.
  ///
  /// A launch that is captured into a graph is not timed. Events would go into the graph, and CUPTI records launches of
  /// the graph, not this one.
  void enter(TimedLaunch &launch, int32_t device, void *stream);
  void leave(TimedLaunch &launch);

  /// Waits for the streams of launches, and reads CUPTI's records. No `enter` may follow before `start`.
  void finish();
  /// Returns the start since the profile's start, and the duration, in nanoseconds; nothing if unknown. Call it after
  /// `finish`.
  std::optional<std::pair<int64_t, int64_t>> times(const TimedLaunch &launch) const;
  /// Returns the method by which launches were timed; None without a launch.
  Method method() const { return streams.empty() ? Method::None : chosen; }
  /// Returns why events are used instead of CUPTI; empty if they were requested.
  const std::string &reason() const { return refusal; }
  /// Releases its resources.
  void forget();

private:
  /// A point in time that both host and GPU know, to align the GPU's times with the host's.
  struct Meeting {
    cuda::Event event;
    uint64_t host;
  };
  void choose();
  void meet(int32_t device, void *stream);

  std::mutex lock;
  uint64_t (*now)() = nullptr;
  bool onlyEvents = false;
  Method chosen = Method::None;
  std::string refusal;
  uint64_t activityBegin = 0;
  std::unordered_map<uint64_t, cuda::KernelTime> kernels;
  std::map<int32_t, Meeting> meetings;
  std::set<std::pair<int32_t, void *>> streams;
};

} // namespace kpkg::package
#endif
