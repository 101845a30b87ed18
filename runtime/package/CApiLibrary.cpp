// Implements the C ABI of errors, log, dtypes, libraries and registries.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/CApi.h"
#include "runtime/package/Dlpack.h"
#include "runtime/package/Environment.h"
#include "runtime/package/Log.h"

using namespace kpkg;
using namespace kpkg::package;

//===--- Errors, strings, log -------------------------------------------------------------------------------------===//

void kpkg_last_error(kpkg_error *error) {
  if (!error)
    return;
  const Error &last = lastError();
  kpkg_error value = {sizeof value,    last.status,           last.message.c_str(),
                      last.op.c_str(), last.instance.c_str(), last.argument.c_str()};
  giveStruct(value, error);
}

kpkg_status kpkg_set_error(kpkg_status status, const char *message) {
  return guarded([&] { return fail(Error{status, message ? message : "", {}, {}, {}}); });
}

const char *kpkg_status_name(kpkg_status status) {
  static const char *const names[] = {
      "ok",          "wrong use",      "file error",     "format error", "trust error",
      "not found",   "kernel error",   "no instance",    "device error", "out of memory",
      "unsupported", "internal error", "capture refused"};
  return status >= 0 && size_t(status) < std::size(names) ? names[status] : "unknown status";
}

const char *kpkg_version(void) { return KPKG_VERSION; }

const char *kpkg_string_data(const kpkg_string *string) { return string ? string->text.c_str() : ""; }
size_t kpkg_string_size(const kpkg_string *string) { return string ? string->text.size() : 0; }
void kpkg_string_free(kpkg_string *string) { delete string; }

void kpkg_set_log(kpkg_log_fn log, void *context) { setLog(log, context); }

//===--- Dtypes and this machine ----------------------------------------------------------------------------------===//

const char *kpkg_dtype_name(int32_t dtype) {
  // Names are literals, so they are zero-terminated.
  return dtype >= 0 && dtype < KPKG_DTYPE_COUNT ? plan::dtypeName(plan::DType(dtype)).data() : nullptr;
}
int32_t kpkg_dtype_from_name(const char *name) { return name ? int32_t(plan::dtypeFromName(name)) : KPKG_NO_DTYPE; }
int32_t kpkg_dtype_bits(int32_t dtype) { return dtypeBits(DType(dtype)); }
int64_t kpkg_dtype_bytes(int32_t dtype, int64_t count) {
  int64_t bits = dtypeBits(DType(dtype));
  // Beyond, products in dtypeBytes overflow.
  int64_t most = bits >= 8 ? INT64_MAX / (bits / 8) : bits > 0 ? (INT64_MAX - 7) / bits : INT64_MAX;
  return count >= 0 && count <= most ? dtypeBytes(DType(dtype), count) : -1;
}
size_t kpkg_dtype_size(int32_t dtype) { return size_t(dtypeBytes(DType(dtype))); }

const char *kpkg_cpu_target(size_t index) {
  auto targets = hostDevice().targets();
  return index < targets.size() ? targets[index].data() : nullptr;
}

int32_t kpkg_cpu_threads(void) {
  static_cast<void>(environment()); // applies KPKG_NUM_THREADS, which is read on first use
  return hostDevice().threads()->count();
}

kpkg_status kpkg_set_cpu_threads(int32_t count) {
  return guarded([&] {
    static_cast<void>(environment()); // so that its number does not come after this one
    device::WorkerThreads &threads = *hostDevice().threads();
    if (count < 1 || count > threads.most())
      return fail(
          Error{KPKG_ERROR_USE,
                "a large call uses 1 to " + std::to_string(threads.most()) + " threads, not " + std::to_string(count),
                {},
                {},
                {}});
    threads.setCount(count);
    return KPKG_OK;
  });
}

void kpkg_follow_cpu_threads(int32_t (*count)(void)) { hostDevice().threads()->follow(count); }

kpkg_status kpkg_tensor_from_dlpack(const void *dl_tensor, kpkg_tensor *tensor) {
  return guarded([&] {
    if (!tensor)
      return nullPointer("tensor");
    auto converted = fromDlpack(dl_tensor);
    if (!converted)
      return fail(converted.error());
    *tensor = *converted;
    return KPKG_OK;
  });
}

kpkg_status kpkg_tensor_to_dlpack(const kpkg_tensor *tensor, int32_t versioned, void *owner,
                                  void (*release)(void *owner), void **dl_managed_tensor) {
  return guarded([&] {
    if (!tensor || !dl_managed_tensor)
      return nullPointer("tensor or dl_managed_tensor");
    auto converted = toDlpack(*tensor, versioned, owner, release);
    if (!converted)
      return fail(converted.error());
    *dl_managed_tensor = *converted;
    return KPKG_OK;
  });
}

//===--- Libraries ------------------------------------------------------------------------------------------------===//

static kpkg_status openReader(Result<format::Reader> reader, const kpkg_open_options *options, kpkg_library **library) {
  kpkg_open_options complete = {};
  if (options)
    std::memcpy(&complete, options, std::min(options->struct_size, sizeof complete));
  auto opened = openLibrary(std::move(reader), options ? &complete : nullptr);
  if (!opened)
    return fail(opened.error());
  auto handle = std::make_unique<kpkg_library>();
  handle->library = std::move(*opened);
  for (const auto &op : handle->library->ops())
    handle->ops.add(*op, nullptr);
  *library = handle.release();
  return KPKG_OK;
}

kpkg_status kpkg_library_open(const char *path, const kpkg_open_options *options, kpkg_library **library) {
  return guarded([&] {
    if (!path || !library)
      return nullPointer("path or library");
    return openReader(format::Reader::open(path), options, library);
  });
}

kpkg_status kpkg_library_open_memory(const void *bytes, size_t size, const char *name, const kpkg_open_options *options,
                                     kpkg_library **library) {
  return guarded([&] {
    if ((!bytes && size) || !name || !library)
      return nullPointer("bytes, name or library");
    return openReader(format::Reader::fromMemory({static_cast<const char *>(bytes), size}, name), options, library);
  });
}

void kpkg_library_close(kpkg_library *library) { delete library; }

size_t kpkg_library_op_count(const kpkg_library *library) { return library ? library->ops.size() : 0; }
const kpkg_op *kpkg_library_op_at(const kpkg_library *library, size_t index) {
  return library ? library->ops.at(index) : nullptr;
}

kpkg_status kpkg_library_op(const kpkg_library *library, const char *name, const kpkg_op **op) {
  return guarded([&] {
    if (!library || !name || !op)
      return nullPointer("library, name or op");
    auto found = library->ops.find(name, "'" + library->library->name() + "'");
    if (!found)
      return fail(found.error());
    *op = *found;
    return KPKG_OK;
  });
}

const char *kpkg_library_manifest(const kpkg_library *library) {
  return library ? library->library->manifestText().c_str() : "";
}

kpkg_status kpkg_library_section(const kpkg_library *library, const char *name, const void **data, size_t *size) {
  return guarded([&] {
    if (!library || !name || !data || !size)
      return nullPointer("library, name, data or size");
    auto contents = library->library->section(name);
    if (!contents)
      return fail(contents.error());
    *data = contents->data();
    *size = contents->size();
    return KPKG_OK;
  });
}

kpkg_status kpkg_library_verify(const kpkg_library *library) {
  return guarded([&] { return library ? fail(library->library->verify()) : nullPointer("library"); });
}

kpkg_status kpkg_library_prewarm(const kpkg_library *library, kpkg_device device) {
  return guarded([&] {
    if (!library)
      return nullPointer("library");
    auto found = findDevice(device);
    return fail(found ? library->library->prewarm(**found) : found.error());
  });
}

//===--- Registries -----------------------------------------------------------------------------------------------===//

kpkg_status kpkg_registry_create(kpkg_registry **registry) {
  return guarded([&] {
    if (!registry)
      return nullPointer("registry");
    *registry = new kpkg_registry;
    return KPKG_OK;
  });
}

void kpkg_registry_destroy(kpkg_registry *registry) { delete registry; }

kpkg_status kpkg_registry_add(kpkg_registry *registry, const kpkg_library *library) {
  return guarded([&] {
    if (!registry || !library)
      return nullPointer("registry or library");
    return fail(registry->registry.add(library->library));
  });
}

kpkg_status kpkg_registry_add_path(kpkg_registry *registry, const char *path) {
  return guarded([&] {
    if (!registry)
      return nullPointer("registry");
    return fail(registry->registry.addPath(path ? path : environment().path));
  });
}

kpkg_status kpkg_registry_set_fallback(kpkg_registry *registry, const char *op, kpkg_fallback_fn fallback,
                                       void *context, void (*destroy)(void *context)) {
  return guarded([&] {
    if (!registry || !op)
      return nullPointer("registry or op");
    std::shared_ptr<Fallback> replacement;
    if (fallback) {
      replacement = std::make_shared<Fallback>();
      replacement->function = fallback;
      replacement->context = context;
      replacement->destroy = destroy;
    }
    Status status = registry->registry.setFallback(op, replacement);
    if (!status && replacement)
      replacement->destroy = nullptr; // not taken over: the caller keeps `context`
    return fail(status);
  });
}

kpkg_status kpkg_registry_set_policy(kpkg_registry *registry, kpkg_policy policy) {
  return guarded([&] {
    if (!registry)
      return nullPointer("registry");
    if (policy < KPKG_POLICY_DEFAULT || policy > KPKG_POLICY_SILENT)
      return fail(Error{KPKG_ERROR_USE, "unknown policy " + std::to_string(policy), {}, {}, {}});
    registry->registry.setPolicy(policy);
    return KPKG_OK;
  });
}

kpkg_status kpkg_registry_set_op_policy(kpkg_registry *registry, const char *op, kpkg_policy policy) {
  return guarded([&] {
    if (!registry || !op)
      return nullPointer("registry or op");
    if (policy < KPKG_POLICY_DEFAULT || policy > KPKG_POLICY_SILENT)
      return fail(Error{KPKG_ERROR_USE, "unknown policy " + std::to_string(policy), {}, {}, {}});
    auto found = registry->registry.op(op);
    if (!found)
      return fail(found.error());
    (*found)->setPolicy(policy);
    return KPKG_OK;
  });
}

kpkg_status kpkg_registry_restrict(kpkg_registry *registry, const char *op, const char *json) {
  return guarded([&] {
    if (!registry || !op)
      return nullPointer("registry or op");
    auto found = registry->registry.op(op);
    if (!found)
      return fail(found.error());
    if (!json) {
      (*found)->restrict(nullptr);
      return KPKG_OK;
    }
    auto restriction = readRestriction(json);
    if (!restriction)
      return fail(restriction.error());
    (*found)->restrict(std::move(*restriction));
    return KPKG_OK;
  });
}

kpkg_status kpkg_registry_op(const kpkg_registry *registry, const char *name, const kpkg_op **op) {
  return guarded([&] {
    if (!registry || !name || !op)
      return nullPointer("registry, name or op");
    auto found = registry->registry.op(name);
    if (!found)
      return fail(found.error());
    *op = *found;
    return KPKG_OK;
  });
}

size_t kpkg_registry_op_count(const kpkg_registry *registry) { return registry ? registry->registry.size() : 0; }
const kpkg_op *kpkg_registry_op_at(const kpkg_registry *registry, size_t index) {
  return registry ? registry->registry.at(index) : nullptr;
}
