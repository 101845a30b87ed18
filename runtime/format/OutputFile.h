// Writes a file whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_OUTPUTFILE_H
#define KPKG_FORMAT_OUTPUTFILE_H

#include <kpkg/result.hpp>

#include <string>
#include <string_view>

namespace kpkg::format {

/// Writes `bytes` to `path` as compilers treat their `-o`: a link is followed, a character device or FIFO is written
/// to, and "-" is standard output. A folder, a block device and a file without write permission are refused, for the
/// superuser too. An ordinary file is written under another name in the same folder, synchronised and renamed: a reader
/// sees the old file or the new one, and a full disk leaves the old one. The error names the path and the cause.
Status writeFile(const std::string &path, std::string_view bytes);

} // namespace kpkg::format
#endif
