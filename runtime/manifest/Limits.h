// Declares limits of the manifest that other code needs, too.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_MANIFEST_LIMITS_H
#define KPKG_MANIFEST_LIMITS_H

#include <cstdint>

namespace kpkg::manifest {

inline constexpr uint64_t maxSections = 1 << 16;
inline constexpr uint64_t maxSectionBytes = uint64_t(2) << 30;
/// Of a section's name and kind.
inline constexpr uint64_t maxNameBytes = 512;
/// Of one kernel. All parameters together have another limit.
inline constexpr uint64_t maxTensorMaps = 8;

} // namespace kpkg::manifest
#endif
