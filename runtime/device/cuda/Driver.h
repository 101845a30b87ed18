// Wraps NVIDIA's driver, found at run time: devices, streams, code, launches. Neither building nor running needs a
// toolkit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_DRIVER_H
#define KPKG_CUDA_DRIVER_H

#include "runtime/device/Device.h"

#include <kpkg/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace kpkg::cuda {

/// A stream of the caller; null is the legacy default stream.
using Stream = device::Stream;

struct DeviceProperties {
  std::string name;
  int32_t major = 0, minor = 0; ///< compute capability
  int32_t multiprocessors = 0;
};

/// Properties that take longer to query, for reports.
struct DeviceDetails {
  DeviceProperties properties;
  int64_t memoryBytes = 0;
  int64_t cacheBytes = 0; ///< of the cache that all multiprocessors share
};

/// All errors below are KPKG_ERROR_DEVICE, and name the driver's call, its code and its text.

/// Fails without a driver. KPKG_CUDA_DRIVER names another library than libcuda.so.1.
Result<int32_t> deviceCount();
Result<DeviceProperties> deviceProperties(int32_t device);
Result<DeviceDetails> deviceDetails(int32_t device);
/// Returns 13000 for CUDA 13.0: the newest toolkit whose code the driver runs.
Result<int32_t> driverVersion();

/// Makes the device's primary context current for this thread. Returns whether leaveContext() must follow.
Result<bool> enterContext(int32_t device);
void leaveContext();

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

/// Creates a stream of the current context that does not wait for the default stream.
Result<Stream> createStream();
Status destroyStream(Stream stream);
Status synchronize(Stream stream);
/// Returns whether work on the stream is captured into a graph.
Result<bool> isCapturing(Stream stream);

/// Loads machine code or PTX for the current context. Never unloaded, because graphs may refer to it.
/// KPKG_ERROR_UNSUPPORTED, here and in the next functions: the driver refuses this code, but may accept other code.
Result<void *> loadImage(std::string_view image, const std::string &imageName);
/// Finds a kernel of a loaded image, in the current context.
Result<void *> findFunction(void *loadedImage, const std::string &symbol);
/// Counts the images that `loadImage` passed to the driver in this process.
device::LoadCounts loadCounts();
/// Allows a kernel to use this much dynamic shared memory.
Status allowShared(void *function, int64_t bytes);

/// Returns how many clusters of `cluster` CTAs are resident on the device. CTAs of a cluster share a part of the
/// device, which may leave some multiprocessors unused.
Result<int64_t> residentClusters(void *function, uint32_t cluster, uint32_t threads, int64_t sharedBytes);

struct Launch {
  void *function = nullptr;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t threads = 1;
  uint32_t sharedBytes = 0;
  /// The kernel may start before the previous one in the stream has ended: it waits itself.
  bool overlaps = false;
};
/// Launches a kernel. `parameters` points to one pointer for each kernel parameter.
Status launch(const Launch &launch, Stream stream, void **parameters);

} // namespace kpkg::cuda
#endif
