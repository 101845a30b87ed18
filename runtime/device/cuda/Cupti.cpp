// Finds CUPTI and its functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Cupti.h"
#include "runtime/device/cuda/Api.h"

#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <type_traits>

namespace kpkg::cuda::cupti {

namespace {
struct Loaded {
  Api api;
  std::string failure;
};
} // namespace

static void *openLibrary(std::string &failure) {
  if (const char *named = std::getenv("KPKG_CUPTI"); named && *named) {
    void *library = ::dlopen(named, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      failure = std::string("KPKG_CUPTI: ") + ::dlerror();
    return library;
  }
  // Prefers a loaded library: two copies in one process would not know of each other.
  for (const char *name : {"libcupti.so.13", "libcupti.so.12"})
    if (void *library = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD))
      return library;
  for (const char *name : {"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                           "/usr/local/cuda/lib64/libcupti.so"})
    if (void *library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return library;
  failure = "there is no libcupti.so.13 and no libcupti.so.12; KPKG_CUPTI names one";
  return nullptr;
}

static Loaded load() {
  Loaded loaded;
  void *library = openLibrary(loaded.failure);
  if (!library)
    return loaded;
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
    if (!function && loaded.failure.empty())
      loaded.failure = std::string("CUPTI has no ") + symbol;
  };
  Api &api = loaded.api;
  find(api.version, "cuptiGetVersion");
  find(api.subscribe, "cuptiSubscribe");
  find(api.unsubscribe, "cuptiUnsubscribe");
  find(api.registerBuffers, "cuptiActivityRegisterCallbacks");
  find(api.enable, "cuptiActivityEnable");
  find(api.disable, "cuptiActivityDisable");
  find(api.flush, "cuptiActivityFlushAll");
  find(api.nextRecord, "cuptiActivityGetNextRecord");
  find(api.pushIdentifier, "cuptiActivityPushExternalCorrelationId");
  find(api.popIdentifier, "cuptiActivityPopExternalCorrelationId");
  find(api.timestamp, "cuptiGetTimestamp");
  find(api.errorText, "cuptiGetResultString");
  if (!loaded.failure.empty())
    return loaded;
  uint32_t version = 0;
  if (Status status = check(api, api.version(&version), "cuptiGetVersion"); !status)
    loaded.failure = status.error().message;
  else if (version < firstVersion || version >= endVersion)
    loaded.failure = "CUPTI has version " + std::to_string(version) + ", known are those of CUDA 12 and 13";
  return loaded;
}

Result<const Api *> open() {
  static const Loaded loaded = load();
  if (!loaded.failure.empty())
    return deviceError(loaded.failure);
  return &loaded.api;
}

Status check(const Api &api, Code code, const char *call) {
  if (code == 0)
    return {};
  const char *text = nullptr;
  api.errorText(code, &text);
  return deviceError(std::string(call) + " failed: " + (text ? text : "error " + std::to_string(code)));
}

} // namespace kpkg::cuda::cupti
