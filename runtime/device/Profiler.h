// Declares how a device times launches that outlive the call which queued them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_PROFILER_H
#define KPKG_DEVICE_PROFILER_H

#include "runtime/device/Launch.h"

#include <optional>
#include <string>
#include <utility>

namespace kpkg::device {

/// A launch between Profiler::begin and end, later with the data that identifies its time.
class TimedLaunch {
public:
  virtual ~TimedLaunch() = default;
};

/// Times launches on all devices of a driver. Any number of threads may use it.
class Profiler {
public:
  /// How launches were timed.
  struct Method {
    std::string name;
    std::optional<std::string> reason; ///< why not by a more exact method, if there is one; empty if that was asked
  };

  virtual ~Profiler() = default;
  /// Forgets all launches. `now` returns the time since the profile's start in nanoseconds. With `onlyEvents`, no
  /// tracing library is used.
  virtual void start(uint64_t (*now)(), bool onlyEvents) = 0;
  /// Called before a launch on a device that is entered. Never makes a call fail: null means that it is not timed.
  virtual std::unique_ptr<TimedLaunch> begin(int32_t device, Stream stream) = 0;
  virtual void end(TimedLaunch &launch) = 0;
  /// Waits for the streams of launches. No `begin` may follow before `start`.
  virtual void finish() = 0;
  /// Returns the start since the profile's start, and the duration, in nanoseconds; nothing if unknown. Call it after
  /// `finish`.
  virtual std::optional<std::pair<int64_t, int64_t>> times(const TimedLaunch &launch) const = 0;
  /// Returns nothing if there was no launch.
  virtual std::optional<Method> method() const = 0;
  /// Releases its resources.
  virtual void forget() = 0;
};

} // namespace kpkg::device
#endif
