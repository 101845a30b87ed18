// Declares the constants of the container: magic, versions, limits, and the manifest's description of a section.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_CONTAINER_H
#define KPKG_FORMAT_CONTAINER_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kpkg::format {

// docs/package-format.md is the specification; change it together with this file.

inline constexpr std::array<unsigned char, 8> magic = {0x89, 'K', 'P', 'K', 'G', '\r', '\n', 0x1a};
inline constexpr uint16_t majorVersion = 1;
inline constexpr uint16_t minorVersion = 1;

/// Magic 8, major 2, minor 2, zero 4, manifest length 8, zero 8, SHA-256 of the manifest 32; little-endian.
inline constexpr size_t headerBytes = 64;
/// Sections start at multiples of this, relative to the file's start. The bytes between are zero.
inline constexpr size_t alignment = 64;

// A file beyond a limit is refused before memory is allocated for it.
inline constexpr uint64_t maxManifestBytes = uint64_t(64) << 20;
inline constexpr uint64_t maxSections = 1 << 16;
inline constexpr uint64_t maxSectionBytes = uint64_t(2) << 30;
/// An Ed25519 key and a signature.
inline constexpr uint64_t signatureBytes = 32 + 64;
inline constexpr size_t maxNameBytes = 512;
inline constexpr int maxManifestDepth = 32;

using Sha256 = std::array<unsigned char, 32>;

enum class Compression { None, Zstd };

struct Section {
  std::string name;
  std::string kind;
  /// Relative to the start of the data, which is the manifest's end rounded up to `alignment`.
  uint64_t offset = 0;
  /// Bytes of the contents.
  uint64_t size = 0;
  /// Bytes in the file.
  uint64_t stored = 0;
  Compression compression = Compression::None;
  /// Of the stored bytes, so that nothing unchecked reaches the decompressor.
  Sha256 digest = {};
  /// Whether a reader that does not know the kind refuses the file.
  bool required = false;
};

constexpr uint64_t alignUp(uint64_t offset) { return (offset + alignment - 1) / alignment * alignment; }

struct SectionKind {
  std::string_view name;
  /// Maximum bytes of the contents.
  uint64_t maxBytes;
};

/// Kinds that this version knows. Others are skipped or, if required, refused.
inline constexpr SectionKind knownKinds[] = {{"cubin", uint64_t(1) << 30},       {"docs", uint64_t(64) << 20},
                                             {"host-object", uint64_t(1) << 30}, {"ir", maxSectionBytes},
                                             {"plan", uint64_t(16) << 20},       {"ptx", uint64_t(1) << 30},
                                             {"signature", signatureBytes},      {"source", uint64_t(64) << 20},
                                             {"tuning", uint64_t(64) << 20},     {"vectors", maxSectionBytes}};

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
