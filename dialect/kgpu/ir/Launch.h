// The launch configuration of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/Hashing.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstdint>

namespace kpkg::kgpu {
inline constexpr unsigned kWarpgroupThreads = 128;

/// The launch configuration of a kernel. LaunchFields.def explains each field.
struct Launch {
#define KPKG_LAUNCH_COUNT(TYPE, MEMBER, SPELLING, DEFAULT, MEANING) TYPE MEMBER = DEFAULT;
#define KPKG_LAUNCH_FLAG(MEMBER, SPELLING, MEANING) bool MEMBER = false;
#include "dialect/kgpu/ir/LaunchFields.def"

  bool operator==(const Launch &other) const = default;

  /// Threads of a kernel block within one CTA; with roles, only those of the consumers.
  unsigned threadsOfBlock() const { return consumers ? consumers * kWarpgroupThreads : threads / blocks; }
  /// Warpgroups of a kernel with roles that compute.
  unsigned computing() const { return consumers + producers; }
  /// CTAs that hold a tile together.
  unsigned ctas() const { return consumers ? 1 : cluster; }
  unsigned lanes() const { return std::min(threadsOfBlock(), 32u); }
  unsigned warps() const { return threadsOfBlock() / lanes(); }
  /// The largest number of warps in a layout of this kernel, a power of two. In accumulators of three warpgroups the
  /// last quarter is padding, which no warp holds.
  unsigned layoutWarps() const { return llvm::PowerOf2Ceil(warps()); }
  /// Warps over which all other tiles are distributed; further warps hold copies.
  unsigned spreadWarps() const { return llvm::isPowerOf2_32(warps()) ? warps() : kWarpgroupThreads / 32; }
};

llvm::hash_code hash_value(const Launch &launch);
} // namespace kpkg::kgpu
