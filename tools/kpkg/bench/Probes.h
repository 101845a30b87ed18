// Compiles the kernels that measure a device's limits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>

namespace kpkg::command::bench {

/// Returns a package with two ops. In `limits::multiply_add(y, wide, many, steps, blocks)` each block computes 5 chains
/// of FMAs (10 if `many`) on a tile of elements. In `limits::copy(x, y, wide, blocks)` each block copies a tile. For a
/// GPU it is PTX, so that no assembler is needed.
Result<Library> compileProbes(bool forGpu);

/// Elements of their tiles, narrow and wide.
struct ProbeTiles {
  int64_t multiplyAdd[2];
  int64_t copy[2];
};
constexpr ProbeTiles probeTiles(bool forGpu) {
  return forGpu ? ProbeTiles{{1024, 2048}, {4096, 8192}} : ProbeTiles{{8, 16}, {16384, 32768}};
}

} // namespace kpkg::command::bench
