// Assigns counters of kernels to launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Counters.h"
#include "runtime/device/cuda/Api.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace kpkg::cuda {

static constexpr uint32_t capturing = 1;
static constexpr unsigned withoutSync = 1, moveReference = 1;

namespace {
/// The number of a stream; or a recording, and the handle of a participating stream. The driver never reuses numbers.
struct Place {
  uint64_t recording = 0, stream = 0;
  auto operator<=>(const Place &) const = default;
};

struct Device {
  std::shared_mutex lock;
  std::map<Place, uint32_t> numbers;
  std::vector<uint32_t> free;
  uint32_t next = 0; ///< smaller numbers are all in `numbers` or `free`

  std::optional<uint32_t> take(uint32_t count) {
    if (next < count)
      return next++;
    auto found = std::find_if(free.begin(), free.end(), [&](uint32_t number) { return number < count; });
    if (found == free.end())
      return std::nullopt;
    uint32_t number = *found;
    free.erase(found);
    return number;
  }
  void giveBack(std::map<Place, uint32_t>::iterator found) {
    free.push_back(found->second);
    numbers.erase(found);
  }
};

/// The counter that a graph holds.
struct Recorded {
  Device *device;
  Place place;
};
} // namespace

/// Never destroyed, because graphs may be destroyed after everything else.
static Device &deviceFor(int32_t device) {
  static auto *all = new std::array<Device, maxDevices>;
  return (*all)[size_t(device)];
}

/// Called by the driver when a graph and everything made from it are destroyed.
static void forget(void *kept) {
  std::unique_ptr<Recorded> recorded(static_cast<Recorded *>(kept));
  std::unique_lock guard(recorded->device->lock);
  if (auto found = recorded->device->numbers.find(recorded->place); found != recorded->device->numbers.end())
    recorded->device->giveBack(found);
}

static Status keepInGraph(void *graph, Device &device, const Place &place) {
  const Api &api = loadedApi();
  auto recorded = std::make_unique<Recorded>(Recorded{&device, place});
  void *object = nullptr;
  if (Status status = check(api.userObject(&object, recorded.get(), forget, 1, withoutSync), "cuUserObjectCreate");
      !status)
    return status;
  static_cast<void>(recorded.release()); // owned by the object
  return check(api.graphRetain(graph, object, 1, moveReference), "cuGraphRetainUserObject");
}

/// Frees the counters of all streams once nothing runs.
static Status giveBackAll(Device &device) {
  if (Status status = check(loadedApi().synchronizeAll(), "cuCtxSynchronize"); !status)
    return status;
  for (auto place = device.numbers.begin(); place != device.numbers.end();) {
    auto here = place++;
    if (here->first.recording == 0)
      device.giveBack(here);
  }
  return {};
}

Result<Counter> counterFor(int32_t index, Stream stream, uint32_t count) {
  const Api &api = loadedApi();
  if (index < 0 || index >= maxDevices)
    return deviceError("device " + std::to_string(index) + " is beyond those that counters are kept for");
  uint32_t state = 0;
  uint64_t recording = 0;
  void *graph = nullptr;
  Place place;
  if (Status status =
          check(api.captureInfo(stream, &state, &recording, &graph, nullptr, nullptr), "cuStreamGetCaptureInfo");
      !status)
    return status.error();
  if (state == capturing) { // the driver returns no numbers of streams then; no other stream can have the handle before
                            // the recording ends
    place = {recording, reinterpret_cast<uint64_t>(stream)};
  } else if (Status status = check(api.streamId(stream, &place.stream), "cuStreamGetId"); !status) {
    return status.error();
  }

  Device &device = deviceFor(index);
  while (true) {
    {
      std::shared_lock held(device.lock);
      if (auto found = device.numbers.find(place); found != device.numbers.end() && found->second < count)
        return Counter{found->second, std::move(held)};
    }
    std::unique_lock guard(device.lock);
    std::optional<uint32_t> number = device.take(count);
    if (!number && state != capturing) {
      if (Status status = giveBackAll(device); !status)
        return status.error();
      number = device.take(count);
    }
    if (!number)
      return deviceError("streams and recorded graphs have all " + std::to_string(count) + " counters of the kernel");
    device.numbers[place] = *number;
    if (Status status = state == capturing ? keepInGraph(graph, device, place) : Status(); !status) {
      device.giveBack(device.numbers.find(place));
      return status.error();
    }
  }
}

} // namespace kpkg::cuda
