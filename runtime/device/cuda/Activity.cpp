// Reads kernel times that the GPU measures: CUPTI's buffers of records, joined by identifier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Activity.h"
#include "runtime/device/cuda/Api.h"
#include "runtime/device/cuda/Cupti.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace kpkg::cuda {

namespace {

/// CUPTI attaches identifiers to driver calls, so records of these are needed too.
constexpr cupti::Kind recordedKinds[] = {cupti::Driver, cupti::ExternalCorrelation, cupti::ConcurrentKernel};
constexpr size_t bufferBytes = 1 << 20;
/// Limit of kernels, so that a recording that is never stopped does not exhaust memory.
constexpr size_t keptKernels = 1 << 22;

struct Kernel {
  uint32_t correlation;
  uint64_t start, end;
};

struct Recording {
  std::mutex lock;
  bool wanted = false;
  uint64_t begin = 0;
  std::unordered_map<uint32_t, uint64_t> identifiers; ///< by correlation
  std::vector<Kernel> kernels;
};

Recording &recording() {
  static auto *instance = new Recording; // never destroyed: CUPTI's thread may outlive static objects
  return *instance;
}

void giveBuffer(uint8_t **buffer, size_t *size, size_t *most) {
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, bufferBytes));
  *size = *buffer ? bufferBytes : 0;
  *most = 0; // as many as fit
}

void takeBuffer(void *, uint32_t, uint8_t *buffer, size_t, size_t valid) {
  Recording &taken = recording();
  {
    std::lock_guard guard(taken.lock);
    const cupti::Api &api = **cupti::open();
    void *record = nullptr;
    while (taken.wanted && valid && api.nextRecord(buffer, valid, &record) == 0) {
      int kind;
      std::memcpy(&kind, record, sizeof kind);
      if (kind == cupti::ExternalCorrelation) {
        cupti::CorrelationRecord found;
        std::memcpy(&found, record, sizeof found);
        if (found.identifierKind == cupti::ownIdentifiers)
          taken.identifiers[found.correlation] = found.identifier;
      } else if (kind == cupti::ConcurrentKernel && taken.kernels.size() < keptKernels) {
        cupti::KernelRecord found;
        std::memcpy(&found, record, sizeof found);
        taken.kernels.push_back({found.correlation, found.start, found.end});
      }
    }
  }
  std::free(buffer);
}

/// Returns whether no other tool is subscribed to CUPTI. Its documentation asks all tools to check that before
/// recording.
Status isFree(const cupti::Api &api) {
  void *subscriber = nullptr;
  cupti::Code code = api.subscribe(&subscriber, [] {}, nullptr);
  if (code == cupti::otherSubscriber)
    return deviceError("another tool uses CUPTI in this process: PyTorch's profiler, since it first recorded a GPU, or "
                       "one of NVIDIA's");
  if (Status status = cupti::check(api, code, "cuptiSubscribe"); !status)
    return status;
  return cupti::check(api, api.unsubscribe(subscriber), "cuptiUnsubscribe");
}

void disableKinds(const cupti::Api &api) {
  for (cupti::Kind kind : recordedKinds)
    api.disable(kind);
}

} // namespace

Result<std::string> activityLibrary() {
  auto opened = cupti::open();
  if (!opened)
    return opened.error();
  uint32_t version = 0;
  if (Status status = cupti::check(**opened, (*opened)->version(&version), "cuptiGetVersion"); !status)
    return status.error();
  return "CUPTI, version " + std::to_string(version);
}

Status startActivity() {
  auto opened = cupti::open();
  if (!opened)
    return opened.error();
  const cupti::Api &api = **opened;
  if (Status status = isFree(api); !status)
    return status;
  Recording &taken = recording();
  {
    std::lock_guard guard(taken.lock);
    taken.identifiers.clear();
    taken.kernels.clear();
    taken.wanted = true;
  }
  Status status = cupti::check(api, api.registerBuffers(giveBuffer, takeBuffer), "cuptiActivityRegisterCallbacks");
  for (cupti::Kind kind : recordedKinds)
    if (status)
      status = cupti::check(api, api.enable(kind), "cuptiActivityEnable");
  if (status)
    status = cupti::check(api, api.timestamp(&taken.begin), "cuptiGetTimestamp");
  if (!status)
    disableKinds(api);
  return status;
}

ActivityScope::ActivityScope(uint64_t identifier) {
  (**cupti::open()).pushIdentifier(cupti::ownIdentifiers, identifier);
}

ActivityScope::~ActivityScope() { (**cupti::open()).popIdentifier(cupti::ownIdentifiers, nullptr); }

std::unordered_map<uint64_t, KernelTime> stopActivity() {
  const cupti::Api &api = **cupti::open();
  api.flush(0);
  // If another tool has taken over the buffers and kinds, it must disable them itself.
  if (isFree(api))
    disableKinds(api);
  Recording &taken = recording();
  std::lock_guard guard(taken.lock);
  taken.wanted = false;
  std::unordered_map<uint64_t, KernelTime> times;
  for (const Kernel &kernel : taken.kernels) {
    auto found = taken.identifiers.find(kernel.correlation);
    if (found == taken.identifiers.end() || kernel.end <= kernel.start)
      continue;
    int64_t start = int64_t(kernel.start - taken.begin);
    auto [time, isFirst] = times.try_emplace(found->second, KernelTime{start, 0});
    if (start < time->second.startNs)
      time->second.startNs = start;
    time->second.durationNs += int64_t(kernel.end - kernel.start);
  }
  taken.identifiers.clear();
  taken.kernels.clear();
  return times;
}

} // namespace kpkg::cuda
