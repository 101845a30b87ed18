// Allocates and copies memory of NVIDIA GPUs in stream order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Memory.h"
#include "runtime/device/cuda/Api.h"

#include <array>
#include <mutex>

namespace kpkg::cuda {

static constexpr uint32_t memoryOfDevice = 2;

/// Returns the runtime's own pool. The device's default pool frees its memory at every synchronisation, and its
/// settings belong to the program.
static Result<void *> pool(int32_t device) {
  static std::array<void *, maxDevices> pools = {};
  static std::mutex lock;
  std::lock_guard guard(lock);
  if (device >= 0 && device < maxDevices && pools[size_t(device)])
    return pools[size_t(device)];
  auto handle = deviceHandle(device);
  if (!handle)
    return handle.error();
  constexpr int pinned = 1, onDevice = 1, releaseThreshold = 4;
  PoolProperties properties = {};
  properties.allocationType = pinned, properties.locationType = onDevice, properties.locationId = *handle;
  void *made = nullptr;
  if (Status status = check(loadedApi().poolCreate(&made, &properties), "cuMemPoolCreate"); !status)
    return status.error();
  uint64_t kept = UINT64_MAX;
  if (Status status = check(loadedApi().poolSet(made, releaseThreshold, &kept), "cuMemPoolSetAttribute"); !status)
    return status.error();
  return pools[size_t(device)] = made;
}

Result<uint64_t> allocate(int32_t device, int64_t bytes, Stream stream) {
  if (bytes == 0)
    return uint64_t(0);
  auto source = pool(device);
  if (!source)
    return source.error();
  uint64_t memory = 0;
  std::string call = "cuMemAllocFromPoolAsync of " + std::to_string(bytes) + " bytes";
  if (Status status = check(loadedApi().allocate(&memory, size_t(bytes), *source, stream), call.c_str()); !status)
    return status.error();
  return memory;
}

Status release(uint64_t memory, Stream stream) {
  return memory ? check(loadedApi().release(memory, stream), "cuMemFreeAsync") : Status();
}

Status copy(uint64_t to, uint64_t from, int64_t bytes, Stream stream) {
  return check(loadedApi().copyDevice(to, from, size_t(bytes), stream), "cuMemcpyDtoDAsync");
}

Status copyToDevice(uint64_t to, const void *from, int64_t bytes, Stream stream) {
  return check(loadedApi().copyToDevice(to, from, size_t(bytes), stream), "cuMemcpyHtoDAsync");
}

Status copyToHost(void *to, uint64_t from, int64_t bytes, Stream stream) {
  return check(loadedApi().copyToHost(to, from, size_t(bytes), stream), "cuMemcpyDtoHAsync");
}

Status copyRows(uint64_t to, int64_t toPitch, uint64_t from, int64_t fromPitch, int64_t width, int64_t rows,
                Stream stream) {
  Copy2D plan = {};
  plan.srcType = plan.dstType = memoryOfDevice;
  plan.srcDevice = from, plan.srcPitch = size_t(fromPitch);
  plan.dstDevice = to, plan.dstPitch = size_t(toPitch);
  plan.width = size_t(width), plan.height = size_t(rows);
  return check(loadedApi().copyRows(&plan, stream), "cuMemcpy2DAsync");
}

} // namespace kpkg::cuda
