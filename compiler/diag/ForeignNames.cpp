// Defines the table of names from other kernel languages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/ForeignNames.h"
#include <initializer_list>

using namespace kpkg::compiler;

std::string_view kpkg::compiler::adviceForForeignName(std::string_view name) {
  constexpr std::string_view ofThreads =
      "a kernel says what a block does to whole tiles; `iota[n]()` numbers the elements of one";
  constexpr std::string_view ofBlocks = "write `block_idx.x` for the block's number and `grid_dim.x` for their count";
  constexpr std::string_view ofBarriers = "kernels work on whole tiles, which need no barrier";
  constexpr std::string_view ofShared = "tiles are values; the compiler decides what of them lies in shared memory";
  constexpr std::string_view ofTriton =
      "functions such as `exp`, `dot` and `zeros[float32](16, 64)` have no prefix; `x.tile[16, 64](i, j).load()` reads";
  constexpr std::string_view ofArrays = "write the function without a prefix: a kernel uses only what the language has";
  constexpr std::string_view ofPieces = "a tile cannot be put together from others; store each one to its own place";
  struct Group {
    std::string_view advice;
    std::initializer_list<std::string_view> names;
  };
  static const Group groups[] = {
      {ofThreads,
       {"thread_idx", "threadIdx", "block_dim", "blockDim", "lane_id", "warp_id", "cluster_idx", "warpSize", "warp"}},
      {ofBlocks, {"blockIdx", "gridDim", "program_id", "num_programs"}},
      {ofBarriers, {"__syncthreads", "__syncwarp", "syncwarp", "syncthreads", "mbarrier"}},
      {ofShared, {"shared", "__shared__", "shared_memory", "smem"}},
      {ofTriton, {"tl", "triton"}},
      {ofArrays, {"np", "numpy", "torch", "math", "cuda", "gpu", "jnp"}},
      {ofPieces, {"concat", "concatenate", "cat", "stack", "hstack", "vstack"}},
  };
  for (const Group &group : groups)
    for (std::string_view foreign : group.names)
      if (foreign == name)
        return group.advice;
  return "";
}
