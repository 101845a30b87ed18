// Allocates the small arrays of one call without the heap.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TVM_FFI_ARENA_H
#define KPKG_RUNTIME_TVM_FFI_ARENA_H

#include <cstddef>
#include <forward_list>
#include <memory>
#include <type_traits>

namespace kpkg::tvm_abi {

/// Memory that lives as long as this object: its own at first, then that of the heap.
class Arena {
public:
  Arena() = default;
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// Returns uninitialised memory for `count` objects.
  template <typename T> T *take(size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= alignment);
    size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    if (bytes > sizeof own - used)
      return reinterpret_cast<T *>(more.emplace_front(new std::byte[bytes]).get());
    used += bytes;
    return reinterpret_cast<T *>(own + used - bytes);
  }

private:
  static constexpr size_t alignment = alignof(std::max_align_t);
  alignas(alignment) std::byte own[2048];
  size_t used = 0;
  std::forward_list<std::unique_ptr<std::byte[]>> more;
};

} // namespace kpkg::tvm_abi

#endif // KPKG_RUNTIME_TVM_FFI_ARENA_H
