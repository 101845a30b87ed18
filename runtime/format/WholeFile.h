// Reads a whole file into memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_WHOLEFILE_H
#define KPKG_FORMAT_WHOLEFILE_H

#include <kpkg/result.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace kpkg::format {

/// Owns the bytes. A mapping is not suitable. A file that shrinks while it is mapped kills the process at the next
/// access (SIGBUS). A file that is written in place changes after it was checked.
class WholeFile {
public:
  static Result<WholeFile> open(const std::string &path);

  std::string_view bytes() const { return {memory.get(), size}; }

private:
  std::unique_ptr<char[]> memory;
  size_t size = 0;
};

} // namespace kpkg::format
#endif
