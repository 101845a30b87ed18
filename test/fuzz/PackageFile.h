// Declares how fuzz targets make files of packages: the header that belongs to a manifest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FUZZ_PACKAGEFILE_H
#define KPKG_FUZZ_PACKAGEFILE_H

#include <string>
#include <string_view>

namespace kpkg::fuzz {

/// Returns a file with a valid header, because no mutation would find the manifest's SHA-256.
std::string packageFile(std::string_view manifest, std::string_view data);

/// Returns the manifest of a file whose header gives its length; nothing of other files.
std::string_view manifestOf(std::string_view file);

} // namespace kpkg::fuzz
#endif
