// Compiled kernels of one ISA level, loaded from an ELF image without the system's dynamic linker.
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

/// Owns the executable memory; addresses it gives are valid while it lives.
///
/// Accepts only what kpkg's compiler makes: ET_DYN for this machine that needs nothing from outside. Refused with the
/// cause: dynamic relocations, needed libraries, initialisers, undefined symbols, thread-local or writable data,
/// segments that are writable and executable, and any size or offset out of bounds. Loading runs nothing of it.
class HostObject {
public:
  /// `name` stands for the image in messages. The bytes are copied.
  static Result<HostObject> load(std::string_view image, const std::string &name);

  HostObject(HostObject &&other) noexcept
      : memory(std::exchange(other.memory, nullptr)), bytes(other.bytes), functions(std::move(other.functions)) {}
  HostObject &operator=(HostObject &&) = delete;
  ~HostObject();

  /// Address of a function, null when there is none of this name.
  const void *find(std::string_view symbol) const;
  size_t functionCount() const { return functions.size(); }

private:
  HostObject() = default;
  friend class Loader;

  std::byte *memory = nullptr;
  size_t bytes = 0;
  std::unordered_map<std::string_view, const void *> functions; ///< names lie in `memory`
};

} // namespace kpkg::cpu
#endif
