// Loads compiled kernels of one ISA level from an ELF image without the system's dynamic linker.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CPU_HOSTOBJECT_H
#define KPKG_DEVICE_CPU_HOSTOBJECT_H

#include <kpkg/result.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace kpkg::cpu {

/// Owns the executable memory. Addresses in it are valid during its lifetime.
///
/// Accepts only output of kpkg's compiler: ET_DYN for this machine without external dependencies. Refuses dynamic
/// relocations, needed libraries, initialisers, undefined symbols, and thread-local or writable data. It also refuses
/// segments that are writable and executable, and any size or offset out of bounds. Errors name the cause. Loading
/// executes no code of the image.
class HostObject {
public:
  /// Loads an image, whose bytes are copied. `name` is its name in messages.
  static Result<HostObject> load(std::string_view image, const std::string &name);

  HostObject(HostObject &&other) noexcept
      : memory(std::exchange(other.memory, nullptr)), bytes(other.bytes), functions(std::move(other.functions)) {}
  HostObject &operator=(HostObject &&) = delete;
  ~HostObject();

  /// Returns the address of a function; null if there is none of this name.
  const void *find(std::string_view symbol) const;
  size_t functionCount() const { return functions.size(); }

private:
  HostObject() = default;
  friend class Loader;

  std::byte *memory = nullptr;
  size_t bytes = 0;
  std::unordered_map<std::string_view, const void *> functions; ///< names point to `memory`
};

} // namespace kpkg::cpu
#endif
