// Lists the names that belong to kernels of one level only.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/ThreadNames.h"
#include <initializer_list>

namespace kpkg::compiler {

namespace {
struct Group {
  std::string_view advice;
  std::initializer_list<std::string_view> names;
};

const Group threads[] = {
    {"a kernel of tiles numbers elements by `iota[n]()`",
     {"thread_idx", "block_dim", "global_idx", "lane_id", "warp_id"}},
    {"a kernel of tiles has `scratch[T](extents...)`, for which the compiler inserts barriers",
     {"shared", "map_shared_rank"}},
    {"a kernel of tiles needs no barrier", {"barrier", "syncwarp", "cluster_sync", "block_rank_in_cluster"}},
    {"tiles have methods such as `t.sum(axis=0)`",
     {"shuffle_idx", "shuffle_up", "shuffle_down", "shuffle_xor", "ballot", "warp_any", "warp_all"}},
    {"a kernel of tiles has `dot`", {"mma"}},
    {"the compiler copies tiles ahead",
     {"async_copy", "async_copy_commit_group", "async_copy_wait_group", "async_copy_wait_all"}},
};

const Group tiles[] = {
    {"read an element as `x[i, j]`, and write it as `x[i, j] = v`",
     {"tile", "window", "load", "store", "gather", "scatter"}},
    {"write `shared[T](extents...)`", {"scratch"}},
    {"`thread_idx.x` numbers the threads", {"iota"}},
    {"a variable is a number of one thread, and a list such as `[0.0] * 8` has several", {"zeros", "full"}},
    {"threads combine their numbers by `warp_sum`, shuffles or shared memory", {"reduce", "scan", "cumsum"}},
    {"write `mma(a, b, c)`, or a loop", {"dot"}},
    {"an element `x[i]` is a number already", {"scalar"}},
    {"an index of each thread decides which elements it takes", {"concat", "stack", "split", "flip", "roll"}},
    {"the launch gives the blocks: `grid=`", {"output_tiles"}},
};

template <size_t Count> std::string_view adviceIn(const Group (&groups)[Count], std::string_view name) {
  for (const Group &group : groups)
    for (std::string_view one : group.names)
      if (one == name)
        return group.advice;
  return "";
}
} // namespace

std::string_view insteadOfThreads(std::string_view name) { return adviceIn(threads, name); }
std::string_view insteadOfTiles(std::string_view name) { return adviceIn(tiles, name); }
bool isOnlyForTiles(std::string_view name) { return !insteadOfTiles(name).empty(); }

} // namespace kpkg::compiler
