// Finds NVIDIA's driver and its functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Api.h"

#include <cstdlib>
#include <dlfcn.h>
#include <type_traits>

namespace kpkg::cuda {

namespace {
struct Loaded {
  Api api;
  std::string failure;
};
} // namespace

static Loaded load() {
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
  find(api.driverVersion, "cuDriverGetVersion");
  find(api.deviceCount, "cuDeviceGetCount");
  find(api.deviceGet, "cuDeviceGet");
  find(api.deviceName, "cuDeviceGetName");
  find(api.deviceMemory, "cuDeviceTotalMem_v2");
  find(api.deviceAttribute, "cuDeviceGetAttribute");
  find(api.primaryRetain, "cuDevicePrimaryCtxRetain");
  find(api.contextCurrent, "cuCtxGetCurrent");
  find(api.contextPush, "cuCtxPushCurrent_v2");
  find(api.contextPop, "cuCtxPopCurrent_v2");
  find(api.libraryLoad, "cuLibraryLoadData");
  find(api.libraryModule, "cuLibraryGetModule");
  find(api.libraryGlobal, "cuLibraryGetGlobal");
  find(api.libraryKernel, "cuLibraryGetKernel");
  find(api.kernelFunction, "cuKernelGetFunction");
  find(api.functionSet, "cuFuncSetAttribute");
  find(api.mostClusters, "cuOccupancyMaxActiveClusters");
  find(api.launch, "cuLaunchKernelEx");
  find(api.tensorMapEncode, "cuTensorMapEncodeTiled");
  find(api.tensorMapEncodeIm2col, "cuTensorMapEncodeIm2col");
  find(api.tensorMapReplaceAddress, "cuTensorMapReplaceAddress");
  find(api.isCapturing, "cuStreamIsCapturing");
  find(api.captureBegin, "cuStreamBeginCapture_v2");
  find(api.captureEnd, "cuStreamEndCapture");
  find(api.graphInstantiate, "cuGraphInstantiateWithFlags");
  find(api.graphLaunch, "cuGraphLaunch");
  find(api.graphExecDestroy, "cuGraphExecDestroy");
  find(api.graphDestroy, "cuGraphDestroy");
  find(api.captureInfo, "cuStreamGetCaptureInfo_v2");
  find(api.streamId, "cuStreamGetId");
  find(api.userObject, "cuUserObjectCreate");
  find(api.graphRetain, "cuGraphRetainUserObject");
  find(api.synchronizeAll, "cuCtxSynchronize");
  find(api.streamCreate, "cuStreamCreate");
  find(api.streamDestroy, "cuStreamDestroy_v2");
  find(api.streamSynchronize, "cuStreamSynchronize");
  find(api.eventCreate, "cuEventCreate");
  find(api.eventDestroy, "cuEventDestroy_v2");
  find(api.eventRecord, "cuEventRecord");
  find(api.eventElapsed, "cuEventElapsedTime");
  find(api.poolCreate, "cuMemPoolCreate");
  find(api.poolSet, "cuMemPoolSetAttribute");
  find(api.allocate, "cuMemAllocFromPoolAsync");
  find(api.release, "cuMemFreeAsync");
  find(api.copyDevice, "cuMemcpyDtoDAsync_v2");
  find(api.copyToDevice, "cuMemcpyHtoDAsync_v2");
  find(api.copyToHost, "cuMemcpyDtoHAsync_v2");
  find(api.copyRows, "cuMemcpy2DAsync_v2");
  if (!loaded.failure.empty())
    return loaded;
  if (Code code = api.init(0); code != 0) {
    const char *text = nullptr;
    api.errorString(code, &text);
    loaded.failure = "the NVIDIA driver does not start: cuInit gives error " + std::to_string(code) +
                     (text ? std::string(", ") + text : "");
  }
  return loaded;
}

static const Loaded &loadedDriver() {
  static const Loaded loaded = load();
  return loaded;
}

Error deviceError(const std::string &message) { return {KPKG_ERROR_DEVICE, message, {}, {}, {}}; }

Result<const Api *> driver() {
  const Loaded &loaded = loadedDriver();
  if (!loaded.failure.empty())
    return deviceError(loaded.failure);
  return &loaded.api;
}

const Api &loadedApi() { return loadedDriver().api; }

Status check(Code code, const char *call) {
  if (code == 0)
    return {};
  const char *name = nullptr, *text = nullptr;
  const Api &api = loadedApi();
  api.errorName(code, &name);
  api.errorString(code, &text);
  return deviceError(std::string(call) + " failed: " + (name ? name : "error " + std::to_string(code)) +
                     (text ? std::string(", ") + text : ""));
}

/// Returns whether the code means that an image or a kernel does not suit the device or the driver.
static bool isRefusal(Code code) {
  switch (code) {
  case 1:   // invalid value: more shared memory than the device has
  case 200: // invalid image
  case 209: // no binary for this GPU
  case 218: // invalid PTX
  case 221: // no library that compiles PTX
  case 222: // PTX of a newer version
  case 223: // compilation of PTX is disabled
  case 300: // invalid source
  case 500: // the image lacks the kernel
  case 801: // not supported
  case 912: // invalid size of a cluster
    return true;
  default:
    return false;
  }
}

Status checkCode(Code code, const char *call) {
  Status status = check(code, call);
  if (status || !isRefusal(code))
    return status;
  Error error = status.error();
  error.status = KPKG_ERROR_UNSUPPORTED;
  return error;
}

Result<int> deviceHandle(int32_t device) {
  auto api = driver();
  if (!api)
    return api.error();
  if (device < 0 || device >= maxDevices)
    return deviceError("there is no CUDA device " + std::to_string(device));
  int handle = 0;
  if (Status status = check((*api)->deviceGet(&handle, device), "cuDeviceGet"); !status)
    return deviceError("there is no CUDA device " + std::to_string(device) + ": " + status.error().message);
  return handle;
}

} // namespace kpkg::cuda
