// Declares the constants of the container: magic, versions, limits, kinds of sections.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_CONTAINER_H
#define KPKG_FORMAT_CONTAINER_H

#include "runtime/manifest/Limits.h"
#include "runtime/manifest/Records.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kpkg::format {

// docs/package-format.md is the specification; change it together with this file.

inline constexpr std::array<unsigned char, 8> magic = {0x89, 'K', 'P', 'K', 'G', '\r', '\n', 0x1a};
inline constexpr uint16_t majorVersion = 1;
inline constexpr uint16_t minorVersion = 2;

/// Magic 8, major 2, minor 2, zero 4, manifest length 8, zero 8, SHA-256 of the manifest 32; little-endian.
inline constexpr size_t headerBytes = 64;
/// Sections start at multiples of this, relative to the file's start. The bytes between are zero.
inline constexpr size_t alignment = 64;

// A file beyond a limit is refused before memory is allocated for it.
inline constexpr uint64_t maxManifestBytes = uint64_t(64) << 20;
using manifest::maxNameBytes;
using manifest::maxSectionBytes;
using manifest::maxSections;
/// An Ed25519 key and a signature.
inline constexpr uint64_t signatureBytes = 32 + 64;
inline constexpr int maxManifestDepth = 32;

using Sha256 = std::array<unsigned char, 32>;

using manifest::Compression;

/// A section of the manifest's list, with its digest as bytes.
struct Section : manifest::Section {
  Sha256 digest = {};
};

constexpr uint64_t alignUp(uint64_t offset) { return (offset + alignment - 1) / alignment * alignment; }

struct SectionKind {
  std::string_view name;
  /// Maximum bytes of the contents.
  uint64_t maxBytes;
};

/// Kinds that this version knows. Others are skipped or, if required, refused.
inline constexpr SectionKind knownKinds[] = {
    {"cubin", uint64_t(1) << 30},   {"docs", uint64_t(64) << 20},   {"host-object", uint64_t(1) << 30},
    {"ir", maxSectionBytes},        {"plan", uint64_t(16) << 20},   {"ptx", uint64_t(1) << 30},
    {"signature", signatureBytes},  {"source", uint64_t(64) << 20}, {"tile-program", uint64_t(64) << 20},
    {"tuning", uint64_t(64) << 20}, {"vectors", maxSectionBytes}};

/// Returns null for a kind that this version does not know.
constexpr const SectionKind *findKind(std::string_view name) {
  for (const SectionKind &kind : knownKinds)
    if (kind.name == name)
      return &kind;
  return nullptr;
}

/// Returns the maximum size of `stored` compressed bytes after decompression, so that a small file cannot request much
/// memory.
constexpr uint64_t maxExpanded(uint64_t stored) { return (uint64_t(1) << 20) + 256 * stored; }

} // namespace kpkg::format
#endif
