// Reads and writes files in the safetensors format: a JSON header, then the bytes of all tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_SAFETENSORS_H
#define KPKG_FORMAT_SAFETENSORS_H

#include <kpkg/result.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::format {

struct Safetensors {
  struct Entry {
    /// "F32", "BF16", "U8", ... as safetensors names dtypes.
    std::string dtype;
    std::vector<int64_t> shape;
    /// Dense, last dimension fastest.
    std::string bytes;
  };
  std::map<std::string, Entry> tensors;
  std::map<std::string, std::string> metadata;

  /// Returns the file. Fails if a text is not UTF-8.
  Result<std::string> text() const;
  /// KPKG_ERROR_FORMAT if `bytes` is no such file; the error calls it `name`. Sizes are not compared with dtypes.
  static Result<Safetensors> parse(std::string_view bytes, const std::string &name);
};

} // namespace kpkg::format
#endif
