// Implements the C ABI of devices, their memory and streams.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/CApi.h"
#include "runtime/package/Devices.h"

#include <mutex>
#include <set>

using namespace kpkg;
using namespace kpkg::package;

static std::byte *asBytes(void *data) { return static_cast<std::byte *>(data); }
static const std::byte *asBytes(const void *data) { return static_cast<const std::byte *>(data); }

/// Runs `body` with the device, which is current.
template <typename Body> static kpkg_status onDevice(device::Device &device, Body body) {
  device::Scope scope(device);
  return scope.ok() ? fail(body(device)) : fail(scope.error());
}
template <typename Body> static kpkg_status onDevice(kpkg_device where, Body body) {
  auto device = findDevice(where);
  return device ? onDevice(**device, body) : fail(device.error());
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
    *count = 0;
    device::Driver *driver = findDriver(type);
    if (!driver)
      return fail(unknownDevice(type));
    auto found = driver->deviceCount();
    if (!found)
      return fail(found.error());
    *count = *found;
    return KPKG_OK;
  });
}

kpkg_status kpkg_device_describe(kpkg_device device, kpkg_device_info *info) {
  return guarded([&] {
    if (!info)
      return nullPointer("info");
    auto found = findDevice(device);
    if (!found)
      return fail(found.error());
    auto description = (*found)->describe();
    if (!description)
      return fail(description.error());
    kpkg_device_info value = {};
    value.struct_size = sizeof value;
    value.name = keepText(description->name);
    value.target = keepText(description->target);
    value.processors = description->processors;
    value.driver_version = description->driverVersion;
    value.memory_bytes = description->memoryBytes, value.cache_bytes = description->cacheBytes;
    return giveStruct(value, info);
  });
}

kpkg_status kpkg_memory_allocate(kpkg_device device, size_t bytes, void *stream, void **data) {
  return guarded([&] {
    if (!data)
      return nullPointer("data");
    *data = nullptr;
    return onDevice(device, [&](device::Device &found) -> Status {
      auto memory = found.allocate(bytes, stream);
      if (!memory)
        return memory.error();
      *data = *memory;
      return {};
    });
  });
}

kpkg_status kpkg_memory_free(kpkg_device device, void *data, void *stream) {
  return guarded(
      [&] { return onDevice(device, [&](device::Device &found) { return found.release(asBytes(data), stream); }); });
}

kpkg_status kpkg_memory_copy(kpkg_device to_device, void *to, kpkg_device from_device, const void *from, size_t bytes,
                             void *stream) {
  return guarded([&] {
    for (kpkg_device device : {to_device, from_device})
      if (!findDriver(device.type))
        return fail(unknownDevice(device.type));
    if (bytes == 0)
      return KPKG_OK;
    if (!to || !from)
      return nullPointer("to or from");
    auto target = findDevice(to_device), source = findDevice(from_device);
    if (!target || !source)
      return fail(target ? source.error() : target.error());
    if (*target == *source)
      return onDevice(**target,
                      [&](device::Device &device) { return device.copy(asBytes(to), asBytes(from), bytes, stream); });
    const bool isToHost = (*target)->traits().hasHostMemory;
    if (!isToHost && !(*source)->traits().hasHostMemory)
      return fail(Error{
          KPKG_ERROR_UNSUPPORTED, "memory is not copied from one GPU to another; copy through the host", {}, {}, {}});
    return onDevice(isToHost ? **source : **target, [&](device::Device &device) {
      Status status = isToHost ? device.copyToHost(to, asBytes(from), bytes, stream)
                               : device.copyFromHost(asBytes(to), from, bytes, stream);
      return status ? device.synchronize(stream) : status;
    });
  });
}

kpkg_status kpkg_stream_create(kpkg_device device, void **stream) {
  return guarded([&] {
    if (!stream)
      return nullPointer("stream");
    *stream = nullptr;
    return onDevice(device, [&](device::Device &found) -> Status {
      auto made = found.createStream();
      if (!made)
        return made.error();
      *stream = *made;
      return {};
    });
  });
}

kpkg_status kpkg_stream_destroy(kpkg_device device, void *stream) {
  return guarded([&] {
    if (!stream)
      return KPKG_OK;
    return onDevice(device, [&](device::Device &found) { return found.destroyStream(stream); });
  });
}

kpkg_status kpkg_stream_synchronize(kpkg_device device, void *stream) {
  return guarded([&] { return onDevice(device, [&](device::Device &found) { return found.synchronize(stream); }); });
}
