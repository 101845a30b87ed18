// Times launches on GPUs during a profile: by CUPTI, else by a pair of events around each launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_LAUNCHTIMES_H
#define KPKG_CUDA_LAUNCHTIMES_H

#include "runtime/device/Profiler.h"
#include "runtime/device/cuda/Activity.h"
#include "runtime/device/cuda/Event.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

namespace kpkg::cuda {

class LaunchTimes : public device::Profiler {
public:
  void start(uint64_t (*now)(), bool onlyEvents) override;
  /// A launch that is captured into a graph is not timed. Events would go into the graph, and CUPTI records launches of
  /// the graph, not this one.
  std::unique_ptr<device::TimedLaunch> begin(int32_t device, device::Stream stream) override;
  void end(device::TimedLaunch &launch) override;
  /// Reads CUPTI's records, too.
  void finish() override;
  std::optional<std::pair<int64_t, int64_t>> times(const device::TimedLaunch &launch) const override;
  std::optional<Method> method() const override;
  void forget() override;

private:
  enum class Source { None, Cupti, Events };
  /// A launch with its identifier of CUPTI, or with the events around it.
  struct Timed;
  /// A point in time that both host and GPU know, to align the GPU's times with the host's.
  struct Meeting {
    Event event;
    uint64_t host;
  };
  void choose();
  void meet(int32_t device, Stream stream);

  std::mutex lock;
  uint64_t (*now)() = nullptr;
  bool onlyEvents = false;
  Source chosen = Source::None;
  std::string refusal;
  uint64_t activityBegin = 0;
  std::unordered_map<uint64_t, KernelTime> kernels;
  std::map<int32_t, Meeting> meetings;
  std::set<std::pair<int32_t, Stream>> streams;
};

} // namespace kpkg::cuda
#endif
