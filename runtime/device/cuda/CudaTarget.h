// Ranks the targets of GPU code for a compute capability.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_CUDATARGET_H
#define KPKG_CUDA_CUDATARGET_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kpkg::cuda {

/// Returns the rank of a target for a GPU of this compute capability, best first, or nothing.
///
/// Machine code for the chip itself comes first, then for older chips of its generation, then PTX, which the driver
/// compiles. The suffix "a" means code for that chip alone.
std::optional<size_t> targetRank(std::string_view target, int32_t major, int32_t minor);

/// Returns whether the target is one of GPU code: "sm_90a", "compute_80".
bool isGpuTarget(std::string_view target);

} // namespace kpkg::cuda
#endif
