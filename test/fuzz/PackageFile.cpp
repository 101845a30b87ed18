// Implements the header of a package's file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/PackageFile.h"

#include "runtime/format/Container.h"
#include "runtime/format/Digest.h"

#include <algorithm>

namespace kpkg::fuzz {

std::string packageFile(std::string_view manifest, std::string_view data) {
  std::string file(format::headerBytes, '\0');
  std::copy(format::magic.begin(), format::magic.end(), file.begin());
  file[8] = char(format::majorVersion);
  file[10] = char(format::minorVersion);
  for (size_t i = 0; i < 8; ++i)
    file[16 + i] = char(manifest.size() >> (8 * i) & 0xff);
  format::Sha256 digest = format::sha256(manifest);
  std::copy(digest.begin(), digest.end(), file.begin() + 32);
  file += manifest;
  if (!data.empty())
    file.resize(format::alignUp(file.size()), '\0');
  return file.append(data);
}

std::string_view manifestOf(std::string_view file) {
  if (file.size() < format::headerBytes)
    return {};
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;)
    length = length << 8 | uint8_t(file[16 + i]);
  return length > file.size() - format::headerBytes ? std::string_view() : file.substr(format::headerBytes, length);
}

} // namespace kpkg::fuzz
