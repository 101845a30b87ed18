// NVIDIA's driver, found at run time: devices, streams, code, launches. No toolkit is needed to build or to run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_DRIVER_H
#define KPKG_CUDA_DRIVER_H

#include <kpkg/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace kpkg::cuda {

/// A stream of the caller; null is the legacy default stream.
using Stream = void *;

struct DeviceProperties {
  std::string name;
  int32_t major = 0, minor = 0; ///< compute capability
  int32_t multiprocessors = 0;
};

/// What it takes longer to ask, for reports.
struct DeviceDetails {
  DeviceProperties properties;
  int64_t memoryBytes = 0;
  int64_t cacheBytes = 0; ///< of the level that all multiprocessors share
};

/// Errors of everything here are KPKG_ERROR_DEVICE and name the driver's call, its code and its text.

/// An error when there is no driver. KPKG_CUDA_DRIVER names another library than libcuda.so.1.
Result<int32_t> deviceCount();
Result<DeviceProperties> deviceProperties(int32_t device);
Result<DeviceDetails> deviceDetails(int32_t device);
/// 13000 for CUDA 13.0: the newest toolkit whose code the driver runs.
Result<int32_t> driverVersion();

/// Makes the device's primary context current for its scope.
class DeviceScope {
public:
  explicit DeviceScope(int32_t device);
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;
  ~DeviceScope();
  const Status &status() const { return entered; }

private:
  Status entered;
  bool pushed = false;
};

/// Of the current context; does not wait for the default stream.
Result<Stream> createStream();
Status destroyStream(Stream stream);
Status synchronize(Stream stream);
/// Whether work on the stream is being recorded into a graph.
Result<bool> isCapturing(Stream stream);

/// Loads machine code or PTX. Never unloaded: graphs may refer to it.
Result<void *> loadImage(std::string_view image, const std::string &imageName);
/// A kernel of a loaded image, in the current context.
Result<void *> findFunction(void *loadedImage, const std::string &symbol);
/// How many images `loadImage` gave to the driver in this process, and how many of them the driver had to compile.
struct LoadCounts {
  uint64_t loads = 0, compilations = 0;
};
LoadCounts loadCounts();
/// Lets a kernel use this much dynamic shared memory.
Status allowShared(void *function, int64_t bytes);

/// How many clusters of so many CTAs of a kernel the device holds at once: CTAs of a cluster share a part of the
/// device, which may leave some of it over.
Result<int64_t> residentClusters(void *function, uint32_t cluster, uint32_t threads, int64_t sharedBytes);

struct Launch {
  void *function = nullptr;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t threads = 1;
  uint32_t sharedBytes = 0;
  /// The kernel may start while the one before it in the stream ends, for which it waits itself.
  bool overlaps = false;
};
/// `parameters` points to one pointer for each kernel parameter.
Status launch(const Launch &launch, Stream stream, void **parameters);

} // namespace kpkg::cuda
#endif
