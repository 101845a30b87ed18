// Implements the C ABI of devices, their memory and streams.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/CpuTarget.h"
#include "runtime/device/cuda/Memory.h"
#include "runtime/package/CApi.h"

#include <cstring>
#include <mutex>
#include <new>
#include <set>

using namespace kpkg;
using namespace kpkg::package;

static constexpr std::align_val_t hostAlignment{64};

static bool isCuda(kpkg_device device) { return device.type == KPKG_DEVICE_CUDA; }

static kpkg_status unknownDevice(int32_t type) {
  return fail(Error{KPKG_ERROR_UNSUPPORTED,
                    "this runtime knows the host and CUDA devices, not devices of type " + std::to_string(type),
                    {},
                    {},
                    {}});
}

/// Runs `body` with the device's context current.
template <typename Body> static kpkg_status onDevice(kpkg_device device, Body body) {
  cuda::DeviceScope scope(device.index);
  return fail(scope.status() ? body() : scope.status());
}

/// Keeps a text for the lifetime of the process. There are few of them.
static const char *keepText(const std::string &text) {
  static std::set<std::string> kept;
  static std::mutex lock;
  std::lock_guard guard(lock);
  return kept.insert(text).first->c_str();
}

kpkg_status kpkg_device_count(int32_t type, int32_t *count) {
  return guarded([&] {
    if (!count)
      return nullPointer("count");
    *count = 1;
    if (type == KPKG_DEVICE_CPU)
      return KPKG_OK;
    if (type != KPKG_DEVICE_CUDA)
      return unknownDevice(type);
    auto found = cuda::deviceCount();
    *count = found ? *found : 0;
    return found ? KPKG_OK : fail(found.error());
  });
}

kpkg_status kpkg_device_describe(kpkg_device device, kpkg_device_info *info) {
  return guarded([&] {
    if (!info)
      return nullPointer("info");
    kpkg_device_info value = {};
    value.struct_size = sizeof value;
    if (device.type == KPKG_DEVICE_CPU) {
      auto targets = cpu::runnableTargets();
      value.name = "CPU";
      value.target = targets.empty() ? "" : targets[0].data();
      value.processors = cpu::threadCount();
      return giveStruct(value, info);
    }
    if (!isCuda(device))
      return unknownDevice(device.type);
    auto details = cuda::deviceDetails(device.index);
    if (!details)
      return fail(details.error());
    auto version = cuda::driverVersion();
    if (!version)
      return fail(version.error());
    const cuda::DeviceProperties &properties = details->properties;
    value.name = keepText(properties.name);
    value.target = keepText("sm_" + std::to_string(properties.major) + std::to_string(properties.minor));
    value.processors = properties.multiprocessors;
    value.driver_version = *version;
    value.memory_bytes = uint64_t(details->memoryBytes), value.cache_bytes = uint64_t(details->cacheBytes);
    return giveStruct(value, info);
  });
}

kpkg_status kpkg_memory_allocate(kpkg_device device, size_t bytes, void *stream, void **data) {
  return guarded([&] {
    if (!data)
      return nullPointer("data");
    *data = nullptr;
    if (device.type == KPKG_DEVICE_CPU) {
      *data = ::operator new(bytes ? bytes : 1, hostAlignment);
      return KPKG_OK;
    }
    if (!isCuda(device))
      return unknownDevice(device.type);
    return onDevice(device, [&]() -> Status {
      auto memory = cuda::allocate(device.index, int64_t(bytes), stream);
      if (!memory)
        return memory.error();
      *data = reinterpret_cast<void *>(*memory);
      return {};
    });
  });
}

kpkg_status kpkg_memory_free(kpkg_device device, void *data, void *stream) {
  return guarded([&] {
    if (device.type == KPKG_DEVICE_CPU) {
      ::operator delete(data, hostAlignment);
      return KPKG_OK;
    }
    if (!isCuda(device))
      return unknownDevice(device.type);
    return onDevice(device, [&] { return cuda::release(reinterpret_cast<uint64_t>(data), stream); });
  });
}

kpkg_status kpkg_memory_copy(kpkg_device to_device, void *to, kpkg_device from_device, const void *from, size_t bytes,
                             void *stream) {
  return guarded([&] {
    for (kpkg_device device : {to_device, from_device})
      if (device.type != KPKG_DEVICE_CPU && !isCuda(device))
        return unknownDevice(device.type);
    if (bytes == 0)
      return KPKG_OK;
    if (!to || !from)
      return nullPointer("to or from");
    if (!isCuda(to_device) && !isCuda(from_device)) {
      std::memmove(to, from, bytes);
      return KPKG_OK;
    }
    if (isCuda(to_device) && isCuda(from_device)) {
      if (to_device.index != from_device.index)
        return fail(Error{
            KPKG_ERROR_UNSUPPORTED, "memory is not copied from one GPU to another; copy through the host", {}, {}, {}});
      return onDevice(to_device, [&] {
        return cuda::copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), int64_t(bytes), stream);
      });
    }
    return onDevice(isCuda(to_device) ? to_device : from_device, [&] {
      Status status = isCuda(to_device)
                          ? cuda::copyToDevice(reinterpret_cast<uint64_t>(to), from, int64_t(bytes), stream)
                          : cuda::copyToHost(to, reinterpret_cast<uint64_t>(from), int64_t(bytes), stream);
      return status ? cuda::synchronize(stream) : status;
    });
  });
}

kpkg_status kpkg_stream_create(kpkg_device device, void **stream) {
  return guarded([&] {
    if (!stream)
      return nullPointer("stream");
    *stream = nullptr;
    if (device.type == KPKG_DEVICE_CPU)
      return KPKG_OK;
    if (!isCuda(device))
      return unknownDevice(device.type);
    return onDevice(device, [&]() -> Status {
      auto made = cuda::createStream();
      if (!made)
        return made.error();
      *stream = *made;
      return {};
    });
  });
}

kpkg_status kpkg_stream_destroy(kpkg_device device, void *stream) {
  return guarded([&] {
    if (device.type == KPKG_DEVICE_CPU || !stream)
      return KPKG_OK;
    if (!isCuda(device))
      return unknownDevice(device.type);
    return onDevice(device, [&] { return cuda::destroyStream(stream); });
  });
}

kpkg_status kpkg_stream_synchronize(kpkg_device device, void *stream) {
  return guarded([&] {
    if (device.type == KPKG_DEVICE_CPU)
      return KPKG_OK;
    if (!isCuda(device))
      return unknownDevice(device.type);
    return onDevice(device, [&] { return cuda::synchronize(stream); });
  });
}
