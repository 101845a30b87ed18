// A whole file, mapped read-only.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_MAPPEDFILE_H
#define KPKG_FORMAT_MAPPEDFILE_H

#include <kpkg/result.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace kpkg::format {

/// Owns the mapping. The file must not shrink while it is mapped: kpkg replaces packages by rename, never in place.
class MappedFile {
public:
  static Result<MappedFile> open(const std::string &path);
  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept : view(std::exchange(other.view, {})) {}
  MappedFile &operator=(MappedFile &&other) noexcept {
    std::swap(view, other.view);
    return *this;
  }
  ~MappedFile();

  std::string_view bytes() const { return view; }

private:
  std::string_view view;
};

} // namespace kpkg::format
#endif
