// The kernels that find out what a device can do.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>

namespace kpkg::command::bench {

/// A package compiled here: `limits::multiply_add(y, wide, many, steps, blocks)`, in which each block does 5 chains of
/// multiply-adds (10 when `many`) on a tile of elements, and `limits::copy(x, y, wide, blocks)`, in which each block
/// copies one. For a GPU it is PTX, so that no assembler is needed.
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
