// NVIDIA's driver, found at run time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Driver.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace kpkg::cuda {

namespace {

using Code = int;

// Structures and numbers of the driver's ABI (cuda.h of CUDA 12 and later).
struct LaunchConfig {
  uint32_t gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void *stream;
  void *attributes;
  uint32_t attributeCount;
};
struct Copy2D {
  size_t srcX, srcY;
  uint32_t srcType;
  const void *srcHost;
  uint64_t srcDevice;
  void *srcArray;
  size_t srcPitch;
  size_t dstX, dstY;
  uint32_t dstType;
  void *dstHost;
  uint64_t dstDevice;
  void *dstArray;
  size_t dstPitch;
  size_t width, height;
};
constexpr uint32_t memoryOfDevice = 2;
constexpr int attributeMultiprocessors = 16, attributeMajor = 75, attributeMinor = 76;
constexpr int functionMaxDynamicShared = 8;
constexpr uint32_t notCapturing = 0;

struct Api {
  Code (*init)(unsigned) = nullptr;
  Code (*errorName)(Code, const char **) = nullptr;
  Code (*errorString)(Code, const char **) = nullptr;
  Code (*deviceGet)(int *, int) = nullptr;
  Code (*deviceName)(char *, int, int) = nullptr;
  Code (*deviceAttribute)(int *, int, int) = nullptr;
  Code (*primaryRetain)(void **, int) = nullptr;
  Code (*contextCurrent)(void **) = nullptr;
  Code (*contextPush)(void *) = nullptr;
  Code (*contextPop)(void **) = nullptr;
  Code (*libraryLoad)(void **, const void *, void *, void *, unsigned, void *, void *, unsigned) = nullptr;
  Code (*libraryKernel)(void **, void *, const char *) = nullptr;
  Code (*kernelFunction)(void **, void *) = nullptr;
  Code (*functionSet)(void *, int, int) = nullptr;
  Code (*launch)(const LaunchConfig *, void *, void **, void **) = nullptr;
  Code (*isCapturing)(void *, uint32_t *) = nullptr;
  Code (*allocate)(uint64_t *, size_t, void *) = nullptr;
  Code (*release)(uint64_t, void *) = nullptr;
  Code (*copy)(uint64_t, uint64_t, size_t, void *) = nullptr;
  Code (*copyRows)(const Copy2D *, void *) = nullptr;
};

Error deviceError(const std::string &message) { return {KPKG_ERROR_DEVICE, message, {}, {}, {}}; }

/// The driver's functions, or why there are none.
struct Loaded {
  Api api;
  std::string failure;
};

Loaded load() {
  Loaded loaded;
  const char *named = std::getenv("KPKG_CUDA_DRIVER");
  const char *name = named && *named ? named : "libcuda.so.1";
  void *library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    loaded.failure = std::string("no NVIDIA driver: ") + ::dlerror();
    return loaded;
  }
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
    if (!function && loaded.failure.empty())
      loaded.failure = std::string("the NVIDIA driver is too old: ") + name + " has no " + symbol;
  };
  Api &api = loaded.api;
  find(api.init, "cuInit");
  find(api.errorName, "cuGetErrorName");
  find(api.errorString, "cuGetErrorString");
  find(api.deviceGet, "cuDeviceGet");
  find(api.deviceName, "cuDeviceGetName");
  find(api.deviceAttribute, "cuDeviceGetAttribute");
  find(api.primaryRetain, "cuDevicePrimaryCtxRetain");
  find(api.contextCurrent, "cuCtxGetCurrent");
  find(api.contextPush, "cuCtxPushCurrent_v2");
  find(api.contextPop, "cuCtxPopCurrent_v2");
  find(api.libraryLoad, "cuLibraryLoadData");
  find(api.libraryKernel, "cuLibraryGetKernel");
  find(api.kernelFunction, "cuKernelGetFunction");
  find(api.functionSet, "cuFuncSetAttribute");
  find(api.launch, "cuLaunchKernelEx");
  find(api.isCapturing, "cuStreamIsCapturing");
  find(api.allocate, "cuMemAllocAsync");
  find(api.release, "cuMemFreeAsync");
  find(api.copy, "cuMemcpyDtoDAsync_v2");
  find(api.copyRows, "cuMemcpy2DAsync_v2");
  if (!loaded.failure.empty())
    return loaded;
  if (Code code = api.init(0); code != 0)
    loaded.failure = "the NVIDIA driver does not start: cuInit gives error " + std::to_string(code);
  return loaded;
}

const Loaded &loadedDriver() {
  static const Loaded loaded = load();
  return loaded;
}

Result<const Api *> driver() {
  const Loaded &loaded = loadedDriver();
  if (!loaded.failure.empty())
    return deviceError(loaded.failure);
  return &loaded.api;
}

Status check(Code code, const char *call) {
  if (code == 0)
    return {};
  const char *name = nullptr, *text = nullptr;
  const Api &api = loadedDriver().api;
  api.errorName(code, &name);
  api.errorString(code, &text);
  return deviceError(std::string(call) + " failed: " + (name ? name : "error " + std::to_string(code)) + (text ? std::string(", ") + text : ""));
}

/// One primary context a device, kept for ever: others of the process use it too.
Result<void *> primaryContext(int32_t device) {
  static constexpr int32_t maxDevices = 64;
  static std::array<void *, maxDevices> contexts = {};
  static std::mutex lock;
  if (device < 0 || device >= maxDevices)
    return deviceError("there is no CUDA device " + std::to_string(device));
  std::lock_guard guard(lock);
  if (contexts[size_t(device)])
    return contexts[size_t(device)];
  auto api = driver();
  if (!api)
    return api.error();
  int handle = 0;
  if (Status status = check((*api)->deviceGet(&handle, device), "cuDeviceGet"); !status)
    return status.error();
  void *context = nullptr;
  if (Status status = check((*api)->primaryRetain(&context, handle), "cuDevicePrimaryCtxRetain"); !status)
    return status.error();
  return contexts[size_t(device)] = context;
}

} // namespace

Result<DeviceProperties> deviceProperties(int32_t device) {
  auto api = driver();
  if (!api)
    return api.error();
  int handle = 0;
  if (Status status = check((*api)->deviceGet(&handle, device), "cuDeviceGet"); !status)
    return status.error();
  DeviceProperties properties;
  char name[256] = {};
  if (Status status = check((*api)->deviceName(name, sizeof name, handle), "cuDeviceGetName"); !status)
    return status.error();
  properties.name = name;
  for (auto [value, attribute] : {std::pair(&properties.major, attributeMajor), std::pair(&properties.minor, attributeMinor),
                                  std::pair(&properties.multiprocessors, attributeMultiprocessors)})
    if (Status status = check((*api)->deviceAttribute(value, attribute, handle), "cuDeviceGetAttribute"); !status)
      return status.error();
  return properties;
}

DeviceScope::DeviceScope(int32_t device) {
  auto context = primaryContext(device);
  if (!context) {
    entered = context.error();
    return;
  }
  const Api &api = loadedDriver().api;
  void *current = nullptr;
  if (api.contextCurrent(&current) == 0 && current == *context)
    return;
  entered = check(api.contextPush(*context), "cuCtxPushCurrent");
  pushed = bool(entered);
}

DeviceScope::~DeviceScope() {
  void *popped = nullptr;
  if (pushed)
    loadedDriver().api.contextPop(&popped);
}

Result<bool> isCapturing(Stream stream) {
  auto api = driver();
  if (!api)
    return api.error();
  uint32_t state = notCapturing;
  if (Status status = check((*api)->isCapturing(stream, &state), "cuStreamIsCapturing"); !status)
    return status.error();
  return state != notCapturing;
}

Result<void *> loadFunction(std::string_view image, const std::string &symbol, const std::string &imageName) {
  auto api = driver();
  if (!api)
    return api.error();
  // The driver reads PTX up to a zero byte.
  std::string terminated(image);
  void *library = nullptr, *kernel = nullptr, *function = nullptr;
  std::string call = "cuLibraryLoadData of '" + imageName + "'";
  if (Status status = check((*api)->libraryLoad(&library, terminated.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), call.c_str()); !status)
    return status.error();
  if (Status status = check((*api)->libraryKernel(&kernel, library, symbol.c_str()), ("cuLibraryGetKernel of '" + symbol + "'").c_str()); !status)
    return status.error();
  if (Status status = check((*api)->kernelFunction(&function, kernel), "cuKernelGetFunction"); !status)
    return status.error();
  return function;
}

Status allowShared(void *function, int64_t bytes) {
  return check(loadedDriver().api.functionSet(function, functionMaxDynamicShared, int(bytes)), "cuFuncSetAttribute");
}

Status launch(const Launch &launch, Stream stream, void **parameters) {
  LaunchConfig config = {launch.grid[0], launch.grid[1], launch.grid[2], launch.threads, 1, 1, launch.sharedBytes, stream, nullptr, 0};
  return check(loadedDriver().api.launch(&config, launch.function, parameters, nullptr), "cuLaunchKernelEx");
}

Result<uint64_t> allocate(int64_t bytes, Stream stream) {
  uint64_t memory = 0;
  if (Status status = check(loadedDriver().api.allocate(&memory, size_t(bytes), stream), "cuMemAllocAsync"); !status)
    return status.error();
  return memory;
}

Status release(uint64_t memory, Stream stream) { return check(loadedDriver().api.release(memory, stream), "cuMemFreeAsync"); }

Status copy(uint64_t to, uint64_t from, int64_t bytes, Stream stream) {
  return check(loadedDriver().api.copy(to, from, size_t(bytes), stream), "cuMemcpyDtoDAsync");
}

Status copyRows(uint64_t to, int64_t toPitch, uint64_t from, int64_t fromPitch, int64_t width, int64_t rows, Stream stream) {
  Copy2D plan = {};
  plan.srcType = plan.dstType = memoryOfDevice;
  plan.srcDevice = from, plan.srcPitch = size_t(fromPitch);
  plan.dstDevice = to, plan.dstPitch = size_t(toPitch);
  plan.width = size_t(width), plan.height = size_t(rows);
  return check(loadedDriver().api.copyRows(&plan, stream), "cuMemcpy2DAsync");
}

} // namespace kpkg::cuda
