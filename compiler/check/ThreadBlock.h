// The block of threads of a kernel at thread level.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <array>
#include <cstdint>

namespace kpkg::compiler {

/// The arguments of `@kernel(level="threads", threads=, cluster=)`. Kernels of tiles have no threads.
struct ThreadBlock {
  std::array<int64_t, 3> extents = {0, 0, 0}; ///< along x, y and z
  int64_t cluster = 1;                        ///< blocks of a cluster

  bool exists() const { return extents[0] != 0; }
  int64_t count() const { return extents[0] * extents[1] * extents[2]; }
};

} // namespace kpkg::compiler
