// Wraps devices, streams, code and launches of NVIDIA's driver.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/Api.h"

#include <array>
#include <atomic>
#include <mutex>

namespace kpkg::cuda {

static constexpr int attributeMultiprocessors = 16, attributeCacheBytes = 38, attributeMajor = 75, attributeMinor = 76;
static constexpr int functionMaxDynamicShared = 8;
static constexpr int launchCluster = 4, launchOverlap = 6;
static constexpr unsigned streamNonBlocking = 1;
static constexpr uint32_t notCapturing = 0;

/// Returns a device's primary context, which is kept forever, because other code in the process uses it too.
static Result<void *> primaryContext(int32_t device) {
  static std::array<void *, maxDevices> contexts = {};
  static std::mutex lock;
  std::lock_guard guard(lock);
  if (device >= 0 && device < maxDevices && contexts[size_t(device)])
    return contexts[size_t(device)];
  auto handle = deviceHandle(device);
  if (!handle)
    return handle.error();
  void *context = nullptr;
  if (Status status = check(loadedApi().primaryRetain(&context, *handle), "cuDevicePrimaryCtxRetain"); !status)
    return status.error();
  return contexts[size_t(device)] = context;
}

Result<int32_t> deviceCount() {
  auto api = driver();
  if (!api)
    return api.error();
  int count = 0;
  if (Status status = check((*api)->deviceCount(&count), "cuDeviceGetCount"); !status)
    return status.error();
  return count;
}

Result<int32_t> driverVersion() {
  auto api = driver();
  if (!api)
    return api.error();
  int version = 0;
  if (Status status = check((*api)->driverVersion(&version), "cuDriverGetVersion"); !status)
    return status.error();
  return version;
}

Result<DeviceProperties> deviceProperties(int32_t device) {
  auto handle = deviceHandle(device);
  if (!handle)
    return handle.error();
  const Api &api = loadedApi();
  DeviceProperties properties;
  char name[256] = {};
  if (Status status = check(api.deviceName(name, sizeof name, *handle), "cuDeviceGetName"); !status)
    return status.error();
  properties.name = name;
  for (auto [value, attribute] :
       {std::pair(&properties.major, attributeMajor), std::pair(&properties.minor, attributeMinor),
        std::pair(&properties.multiprocessors, attributeMultiprocessors)})
    if (Status status = check(api.deviceAttribute(value, attribute, *handle), "cuDeviceGetAttribute"); !status)
      return status.error();
  return properties;
}

Result<DeviceDetails> deviceDetails(int32_t device) {
  auto properties = deviceProperties(device);
  auto handle = deviceHandle(device);
  if (!properties || !handle)
    return properties ? handle.error() : properties.error();
  DeviceDetails details;
  details.properties = std::move(*properties);
  size_t memory = 0;
  if (Status status = check(loadedApi().deviceMemory(&memory, *handle), "cuDeviceTotalMem"); !status)
    return status.error();
  int cache = 0;
  if (Status status = check(loadedApi().deviceAttribute(&cache, attributeCacheBytes, *handle), "cuDeviceGetAttribute");
      !status)
    return status.error();
  details.memoryBytes = int64_t(memory), details.cacheBytes = cache;
  return details;
}

Result<bool> enterContext(int32_t device) {
  auto context = primaryContext(device);
  if (!context)
    return context.error();
  const Api &api = loadedApi();
  void *current = nullptr;
  if (api.contextCurrent(&current) == 0 && current == *context)
    return false;
  if (Status status = check(api.contextPush(*context), "cuCtxPushCurrent"); !status)
    return status.error();
  return true;
}

void leaveContext() {
  void *popped = nullptr;
  loadedApi().contextPop(&popped);
}

DeviceScope::DeviceScope(int32_t device) {
  auto context = enterContext(device);
  if (!context)
    entered = context.error();
  pushed = context && *context;
}

DeviceScope::~DeviceScope() {
  if (pushed)
    leaveContext();
}

Result<Stream> createStream() {
  auto api = driver();
  if (!api)
    return api.error();
  Stream made = nullptr;
  if (Status status = check((*api)->streamCreate(&made, streamNonBlocking), "cuStreamCreate"); !status)
    return status.error();
  return made;
}

Status destroyStream(Stream stream) { return check(loadedApi().streamDestroy(stream), "cuStreamDestroy"); }

Status synchronize(Stream stream) { return check(loadedApi().streamSynchronize(stream), "cuStreamSynchronize"); }

Result<bool> isCapturing(Stream stream) {
  auto api = driver();
  if (!api)
    return api.error();
  uint32_t state = notCapturing;
  if (Status status = check((*api)->isCapturing(stream, &state), "cuStreamIsCapturing"); !status)
    return status.error();
  return state != notCapturing;
}

static std::atomic<uint64_t> loads, compilations;

device::LoadCounts loadCounts() {
  return {loads.load(std::memory_order_relaxed), compilations.load(std::memory_order_relaxed)};
}

Result<void *> loadImage(std::string_view image, const std::string &imageName) {
  auto api = driver();
  if (!api)
    return api.error();
  // The driver reads PTX up to a zero byte.
  std::string terminated(image);
  void *library = nullptr;
  std::string call = "cuLibraryLoadData of '" + imageName + "'";
  loads.fetch_add(1, std::memory_order_relaxed);
  if (!image.starts_with("\x7f"
                         "ELF")) // text, not machine code
    compilations.fetch_add(1, std::memory_order_relaxed);
  if (Status status = checkCode(
          (*api)->libraryLoad(&library, terminated.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), call.c_str());
      !status)
    return status.error();
  // A library is code for any device; whether it is code for this one shows when the context loads its module.
  void *module = nullptr;
  call = "cuLibraryGetModule of '" + imageName + "'";
  if (Status status = checkCode((*api)->libraryModule(&module, library), call.c_str()); !status)
    return status.error();
  return library;
}

Result<void *> findFunction(void *loadedImage, const std::string &symbol) {
  auto api = driver();
  if (!api)
    return api.error();
  void *kernel = nullptr, *function = nullptr;
  if (Status status = checkCode((*api)->libraryKernel(&kernel, loadedImage, symbol.c_str()),
                                ("cuLibraryGetKernel of '" + symbol + "'").c_str());
      !status)
    return status.error();
  if (Status status = checkCode((*api)->kernelFunction(&function, kernel), "cuKernelGetFunction"); !status)
    return status.error();
  return function;
}

Status allowShared(void *function, int64_t bytes) {
  return checkCode(loadedApi().functionSet(function, functionMaxDynamicShared, int(bytes)), "cuFuncSetAttribute");
}

Result<int64_t> residentClusters(void *function, uint32_t cluster, uint32_t threads, int64_t sharedBytes) {
  LaunchAttribute size = {launchCluster, {}, {}};
  size.value.extents[0] = cluster, size.value.extents[1] = size.value.extents[2] = 1;
  LaunchConfig config = {cluster, 1, 1, threads, 1, 1, uint32_t(sharedBytes), nullptr, &size, 1};
  int clusters = 0;
  if (Status status = checkCode(loadedApi().mostClusters(&clusters, function, &config), "cuOccupancyMaxActiveClusters");
      !status)
    return status.error();
  return clusters;
}

Status launch(const Launch &launch, Stream stream, void **parameters) {
  LaunchAttribute overlap = {launchOverlap, {}, {1}};
  LaunchConfig config = {launch.grid[0],     launch.grid[1], launch.grid[2], launch.threads, 1, 1,
                         launch.sharedBytes, stream,         &overlap,       launch.overlaps};
  return check(loadedApi().launch(&config, launch.function, parameters, nullptr), "cuLaunchKernelEx");
}

} // namespace kpkg::cuda
