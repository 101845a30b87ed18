// Declares devices and streams of the C++ API.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_HPP
#define KPKG_DEVICE_HPP

#include <kpkg/result.hpp>

#include <functional>
#include <memory>

namespace kpkg {

inline constexpr kpkg_device Cpu = {KPKG_DEVICE_CPU, 0};

/// Returns GPU number `index`, counted like CUDA does (CUDA_VISIBLE_DEVICES).
constexpr kpkg_device cudaDevice(int32_t index = 0) { return {KPKG_DEVICE_CUDA, index}; }

/// Returns the number of GPUs, or an error with the cause if there is no driver.
inline Result<int32_t> cudaDeviceCount() {
  int32_t count = 0;
  if (kpkg_device_count(KPKG_DEVICE_CUDA, &count) != KPKG_OK)
    return Error::last();
  return count;
}

using DeviceInfo = kpkg_device_info;
inline Result<DeviceInfo> describeDevice(kpkg_device device) {
  DeviceInfo info = {};
  info.struct_size = sizeof info;
  if (kpkg_device_describe(device, &info) != KPKG_OK)
    return Error::last();
  return info;
}

/// A queue of device work: a driver's stream handle, borrowed ({handle, device}) or owned by all copies (create). The
/// default is the default stream; the host has none.
struct Stream {
  void *handle = nullptr;
  kpkg_device device = cudaDevice();
  std::shared_ptr<void> owner = nullptr;
  /// Allocates memory of `device` for results and temporaries of calls on this stream, and for Tensor::empty and to, in
  /// place of the runtime's pool. It must stay until the work is done that was queued before its last owner went.
  std::function<Result<std::shared_ptr<void>>(size_t bytes)> allocate = nullptr;

  /// Creates a stream that does not wait for the default stream.
  static Result<Stream> create(kpkg_device device = cudaDevice()) {
    Stream stream;
    stream.device = device;
    if (kpkg_stream_create(device, &stream.handle) != KPKG_OK)
      return Error::last();
    stream.owner = {stream.handle, [device](void *handle) { kpkg_stream_destroy(device, handle); }};
    return stream;
  }
  /// Waits for all queued work. A failed kernel is reported as DeviceError here.
  Status synchronize() const { return Status::from(kpkg_stream_synchronize(device, handle)); }
};

} // namespace kpkg
#endif
