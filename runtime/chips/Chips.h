// Describes GPU chips, by the table in Chips.def.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>

namespace kpkg::chips {

/// Numbers that estimates and choices of launches use. Chips.def gives their meaning and origin.
struct Heuristics {
#define KPKG_HEURISTIC(type, name, value, origin, result, meaning) type name = value;
#include "runtime/chips/Chips.def"
};

/// One chip. Chips.def gives the meaning of the fields.
struct Chip {
#define KPKG_CHIP_FIELD(group, type, name, meaning) type name;
#include "runtime/chips/Chips.def"
  Heuristics heuristics = {};

  /// Returns how many CTAs fit a multiprocessor at once, given their threads, registers per thread and bytes of shared
  /// memory.
  constexpr unsigned residentCtas(unsigned threads, unsigned registers, int64_t shared) const {
    unsigned warps = (threads + warpSize - 1) / warpSize;
    // Hardware allocates registers for whole warps.
    unsigned ofWarp = (registers + registerGranularity - 1) / registerGranularity * registerGranularity * warpSize;
    unsigned byRegisters = registersPerSm / std::max(ofWarp * warps, 1u);
    unsigned byThreads = maxThreadsPerSm / (warps * warpSize);
    unsigned byShared = unsigned(sharedPerSm / (shared + reservedShared));
    return std::min({byRegisters, byThreads, byShared, maxCtasPerSm});
  }
};

/// All chips, oldest first.
inline constexpr Chip all[] = {
#define KPKG_CHIP(...) {__VA_ARGS__},
#include "runtime/chips/Chips.def"
};

/// Returns the chip of this name, or null.
constexpr const Chip *find(std::string_view name) {
  for (const Chip &chip : all)
    if (chip.name == name)
      return &chip;
  return nullptr;
}

/// The chip on which heuristics were measured, and among whose multiprocessors ops divide their work.
inline constexpr const Chip &reference = *find("sm_90a");

} // namespace kpkg::chips
