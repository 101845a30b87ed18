// Records calls and launches during a profile: kpkg_profile_start to kpkg_profile_stop.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_PROFILE_H
#define KPKG_PACKAGE_PROFILE_H

#include "runtime/package/Observers.h"
#include "runtime/package/PlannedCall.h"

#include <string>

namespace kpkg::package {

/// Returns whether calls are profiled. Costs one load.
inline bool isProfiling() { return isObservedBy(Profiling); }

/// Starts a profile. With `onlyEvents`, CUPTI is not used for times on GPUs.
Status startProfile(bool ranges, bool onlyEvents);
/// Returns the JSON that docs/runtime.md describes. Times are nanoseconds since the start.
std::string stopProfile();

/// One call of an op, from construction to `finish`.
class ProfiledCall {
public:
  explicit ProfiledCall(const std::string &op);
  ~ProfiledCall();
  ProfiledCall(const ProfiledCall &) = delete;
  ProfiledCall &operator=(const ProfiledCall &) = delete;
  void finish(bool succeeded, bool fellBack);

private:
  const std::string &op;
  uint64_t begin;
  bool hasRange;
};

/// One launch, from construction to destruction. On a GPU it is timed there.
class ProfiledLaunch {
public:
  ProfiledLaunch(const std::string &op, const PlannedLaunch &launch, device::Device &device, void *stream);
  ~ProfiledLaunch();
  ProfiledLaunch(const ProfiledLaunch &) = delete;
  ProfiledLaunch &operator=(const ProfiledLaunch &) = delete;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace kpkg::package
#endif
