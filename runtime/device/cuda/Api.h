// Declares the functions of NVIDIA's driver that the runtime calls, by its ABI; private to this folder.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_API_H
#define KPKG_CUDA_API_H

#include <kpkg/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace kpkg::cuda {

using Code = int;

// Structures and numbers of cuda.h of CUDA 12 and later.
struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    int flag;
    uint32_t extents[3];
    char bytes[64];
  } value;
};
struct LaunchConfig {
  uint32_t gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void *stream;
  LaunchAttribute *attributes;
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
struct PoolProperties {
  int allocationType, handleTypes, locationType, locationId;
  void *security;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56 && sizeof(Copy2D) == 128 &&
              sizeof(PoolProperties) == 88);

struct Api {
  Code (*init)(unsigned) = nullptr;
  Code (*errorName)(Code, const char **) = nullptr;
  Code (*errorString)(Code, const char **) = nullptr;
  Code (*driverVersion)(int *) = nullptr;
  Code (*deviceCount)(int *) = nullptr;
  Code (*deviceGet)(int *, int) = nullptr;
  Code (*deviceName)(char *, int, int) = nullptr;
  Code (*deviceMemory)(size_t *, int) = nullptr;
  Code (*deviceAttribute)(int *, int, int) = nullptr;
  Code (*primaryRetain)(void **, int) = nullptr;
  Code (*contextCurrent)(void **) = nullptr;
  Code (*contextPush)(void *) = nullptr;
  Code (*contextPop)(void **) = nullptr;
  Code (*libraryLoad)(void **, const void *, void *, void *, unsigned, void *, void *, unsigned) = nullptr;
  Code (*libraryModule)(void **, void *) = nullptr;
  Code (*libraryGlobal)(uint64_t *, size_t *, void *, const char *) = nullptr;
  Code (*libraryKernel)(void **, void *, const char *) = nullptr;
  Code (*kernelFunction)(void **, void *) = nullptr;
  Code (*functionSet)(void *, int, int) = nullptr;
  Code (*mostClusters)(int *, void *, const LaunchConfig *) = nullptr;
  Code (*launch)(const LaunchConfig *, void *, void **, void **) = nullptr;
  Code (*tensorMapEncode)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                          const uint32_t *, int, int, int, int) = nullptr;
  Code (*tensorMapEncodeIm2col)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const int *,
                                const int *, uint32_t, uint32_t, const uint32_t *, int, int, int, int) = nullptr;
  Code (*tensorMapReplaceAddress)(void *, void *) = nullptr;
  Code (*isCapturing)(void *, uint32_t *) = nullptr;
  Code (*captureBegin)(void *, int) = nullptr;
  Code (*captureEnd)(void *, void **) = nullptr;
  Code (*graphInstantiate)(void **, void *, unsigned long long) = nullptr;
  Code (*graphLaunch)(void *, void *) = nullptr;
  Code (*graphExecDestroy)(void *) = nullptr;
  Code (*graphDestroy)(void *) = nullptr;
  Code (*captureInfo)(void *, uint32_t *, uint64_t *, void **, void *, void *) = nullptr;
  Code (*streamId)(void *, uint64_t *) = nullptr;
  Code (*userObject)(void **, void *, void (*)(void *), unsigned, unsigned) = nullptr;
  Code (*graphRetain)(void *, void *, unsigned, unsigned) = nullptr;
  Code (*synchronizeAll)() = nullptr;
  Code (*streamCreate)(void **, unsigned) = nullptr;
  Code (*streamDestroy)(void *) = nullptr;
  Code (*streamSynchronize)(void *) = nullptr;
  Code (*eventCreate)(void **, unsigned) = nullptr;
  Code (*eventDestroy)(void *) = nullptr;
  Code (*eventRecord)(void *, void *) = nullptr;
  Code (*eventElapsed)(float *, void *, void *) = nullptr;
  Code (*poolCreate)(void **, const PoolProperties *) = nullptr;
  Code (*poolSet)(void *, int, void *) = nullptr;
  Code (*allocate)(uint64_t *, size_t, void *, void *) = nullptr;
  Code (*release)(uint64_t, void *) = nullptr;
  Code (*copyDevice)(uint64_t, uint64_t, size_t, void *) = nullptr;
  Code (*copyToDevice)(uint64_t, const void *, size_t, void *) = nullptr;
  Code (*copyToHost)(void *, uint64_t, size_t, void *) = nullptr;
  Code (*copyRows)(const Copy2D *, void *) = nullptr;
};

/// Returns an Error with status KPKG_ERROR_DEVICE.
Error deviceError(const std::string &message);
/// Returns the driver's functions, or an error if there are none.
Result<const Api *> driver();
/// Returns the functions after driver() has succeeded, as it has for every owner of a context, a stream or memory.
const Api &loadedApi();
/// Converts a driver's code. Errors name the call, the code's name and its text.
Status check(Code code, const char *call);
/// Converts the code of a call that loads code or prepares a kernel. If the driver refuses this code, and may accept
/// other code, the error is KPKG_ERROR_UNSUPPORTED.
Status checkCode(Code code, const char *call);
/// Returns the driver's handle of a device. Users only know its number.
Result<int> deviceHandle(int32_t device);

/// Limit of devices for which the runtime keeps data.
inline constexpr int32_t maxDevices = 64;

} // namespace kpkg::cuda
#endif
