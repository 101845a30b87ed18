// How launches on GPUs are timed while a profile is taken: by CUPTI, else by a pair of events around each.
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

/// A launch on a GPU between `enter` and `leave`, then what its time is found by.
struct TimedLaunch {
  int32_t device = -1;
  void *stream = nullptr;
  uint64_t identifier = 0; ///< CUPTI's; 0 where there is none
  std::unique_ptr<cuda::ActivityScope> scope;
  std::optional<cuda::Event> first, last;

  bool isTimed() const { return identifier || last; }
};

class LaunchTimes {
public:
  enum class Method { None, Cupti, Events };

  /// Forgets all. `now` tells the time since the profile's start in nanoseconds. With `onlyEvents`, CUPTI is not asked.
  void start(uint64_t (*now)(), bool onlyEvents);
  /// Before a launch in the current context. One that is captured into a graph is not timed: events would go into the
  /// graph, and CUPTI tells of the graph's launches, not of this. Never makes a call fail.
  void enter(TimedLaunch &launch, int32_t device, void *stream);
  void leave(TimedLaunch &launch);

  /// Waits for the streams of launches and takes what CUPTI recorded. No `enter` may follow before `start`.
  void finish();
  /// Start since the profile's start, and length, in nanoseconds; nothing where they are not known. After `finish`.
  std::optional<std::pair<int64_t, int64_t>> times(const TimedLaunch &launch) const;
  /// By what launches were timed; None without one.
  Method method() const { return streams.empty() ? Method::None : chosen; }
  /// Why CUPTI is not used, where events are; empty where they were asked for.
  const std::string &reason() const { return refusal; }
  /// Gives back what it holds.
  void forget();

private:
  /// A point that the host and a GPU both know, so that the GPU's times can be put beside the host's.
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
