// Shared code of the C ABI: handles, and the boundary that no exception crosses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_CAPI_H
#define KPKG_PACKAGE_CAPI_H

#include "runtime/package/LastError.h"
#include "runtime/package/Registry.h"

#include <cstring>
#include <exception>
#include <new>

struct kpkg_string {
  std::string text;
};

struct kpkg_library {
  std::shared_ptr<kpkg::package::Library> library;
  /// Without fallbacks, which belong to registries.
  kpkg::package::OpTable ops;
};

struct kpkg_registry {
  kpkg::package::Registry registry;
};

namespace kpkg::package {

/// Runs the body of a C function.
template <typename Body> kpkg_status guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(Error{KPKG_ERROR_MEMORY, "out of memory", {}, {}, {}});
  } catch (const std::exception &error) {
    return fail(Error{KPKG_ERROR_INTERNAL, std::string("internal error: ") + error.what(), {}, {}, {}});
  } catch (...) {
    return fail(Error{KPKG_ERROR_INTERNAL, "internal error", {}, {}, {}});
  }
}

inline kpkg_status nullPointer(const char *what) {
  return fail(Error{KPKG_ERROR_USE, std::string(what) + " is null", {}, {}, {}});
}

/// Copies as much of `value` as the caller's struct has, and keeps its `struct_size`.
template <typename Struct> kpkg_status giveStruct(const Struct &value, Struct *out) {
  size_t size = out->struct_size;
  if (size < sizeof(size_t))
    return fail(Error{KPKG_ERROR_USE, "struct_size is not set", {}, {}, {}});
  std::memcpy(out, &value, std::min(size, sizeof(Struct)));
  out->struct_size = size;
  return KPKG_OK;
}

} // namespace kpkg::package
#endif
