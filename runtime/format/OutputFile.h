// Writes a file completely or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_OUTPUTFILE_H
#define KPKG_FORMAT_OUTPUTFILE_H

#include <kpkg/result.hpp>

#include <string>
#include <string_view>

namespace kpkg::format {

/// Writes `bytes` to `path` like compilers' `-o`. Links are followed, character devices and FIFOs are written to, and
/// "-" is standard output. A folder, a block device and a file without write permission are refused, for the superuser
/// too.
///
/// An ordinary file is written under another name in the same folder, synchronised and renamed. A reader thus sees the
/// old file or the new one, and a full disk keeps the old one. Errors name the path and the cause.
Status writeFile(const std::string &path, std::string_view bytes);

} // namespace kpkg::format
#endif
