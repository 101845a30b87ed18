// Defines the table of names from other kernel languages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/ForeignNames.h"
#include <initializer_list>

using namespace kpkg::compiler;

namespace {

struct Group {
  std::string_view advice;
  std::initializer_list<std::string_view> names;
};

const Group names[] = {
    {"with `@kernel(level=\"threads\", threads=256)` write `thread_idx.x`, `block_dim.x`, `lane_id()` and `warp_id()`; "
     "other kernels say what a block does to tiles, whose elements `iota[n]()` numbers",
     {"threadIdx", "blockDim", "cluster_idx", "warpSize", "warp", "laneid", "thread_id"}},
    {"write `block_idx.x` for the block's number and `grid_dim.x` for their count",
     {"blockIdx", "gridDim", "program_id", "num_programs"}},
    {"with `@kernel(level=\"threads\")` write `barrier()` or `syncwarp()`; kernels of tiles need no barrier",
     {"__syncthreads", "__syncwarp", "syncthreads", "mbarrier"}},
    {"with `@kernel(level=\"threads\")` write `shared[T](extents...)`; kernels of tiles have `scratch[T](extents...)`, "
     "for "
     "which the compiler inserts barriers",
     {"__shared__", "shared_memory", "smem"}},
    {"functions such as `exp`, `dot` and `zeros[float32](16, 64)` have no prefix; `x.tile[16, 64](i, j).load()` reads",
     {"tl", "triton"}},
    {"write the function without a prefix: a kernel uses only what the language has",
     {"np", "numpy", "torch", "math", "cuda", "gpu", "jnp"}},
    {"write `concat(a, b, axis=0)` or `stack(a, b, axis=0)`", {"concatenate", "cat", "hstack", "vstack"}},
    {"write `split(t, 2, axis=0)`, or take a part as in `t[:, 0:16]`", {"chunk", "narrow"}},
    {"write `flip(t, axis)`", {"reverse", "fliplr", "flipud"}},
    {"`iota[n]()` numbers the elements of a tile", {"arange", "range_tile"}},
    {"write `select(condition, a, b)`", {"where"}},
    {"write `a ** b`", {"pow", "powf"}},
    {"write `max` and `min`, which take tiles", {"maximum", "minimum", "fmax", "fmin", "fmaxf", "fminf"}},
    {"write `ceildiv(a, b)`", {"cdiv", "ceil_div", "div_ceil"}},
    {"a kernel writes `full[T](1, shape)`; an op writes `full(1, shape, dtype=T)` or `full_like(x, 1)`",
     {"ones_like", "ones"}},
    {"functions have no suffix for a type: write `sqrt`, `exp`, `log`, `tanh`, `abs`",
     {"sqrtf", "rsqrtf", "expf", "logf", "tanhf", "sinf", "cosf", "fabs", "fabsf", "erff"}},
    {"write `x.atomic_add(i, value)`, or `.atomic_max` and `.atomic_min`",
     {"atomicAdd", "atomicMax", "atomicMin", "atomic_add", "atomic_max", "atomic_min"}},
    {"write `x.atomic_compare_exchange(i, expected, value)`", {"atomicCAS", "atomic_cas"}},
    {"write `x.atomic_exchange(i, value)`", {"atomicExch", "atomic_xchg"}},
    {"reductions are methods of tiles, such as `t.sum(axis=0)`", {"warp_reduce", "block_reduce", "block_sum"}},
    {"with `@kernel(level=\"threads\")` write `shuffle_down(v, n)`, `shuffle_xor(v, mask)`, `ballot(c)` or "
     "`warp_sum(v)`; "
     "reductions of tiles are methods, such as `t.sum(axis=0)`",
     {"__shfl_sync", "__shfl_down_sync", "__shfl_up_sync", "__shfl_xor_sync", "__reduce_add_sync", "__ballot_sync",
      "__any_sync", "__all_sync"}},
    {"`x.tile[16, 64](i, j).load()` reads a tile and `.store(t)` writes one", {"load", "store"}},
    {"there is no inline assembly", {"asm", "inline_asm", "inlined_assembly"}},
    {"a kernel takes `x: Tensor[float32, 2]`, and `mut y: Tensor[float32, 2]` to write",
     {"LayoutTensor", "UnsafePointer", "TileTensor"}},
};

const Group tileMethods[] = {
    {"write `.cast[float32]()`, with the dtype that you want",
     {"to", "astype", "type_as", "float", "half", "bfloat16"}},
    {"write the function: `exp(t)`, `sqrt(t)`, `abs(t)`",
     {"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sin", "cos", "erf", "abs", "floor", "ceil", "round"}},
    {"divide `.sum(axis=...)` by the extent", {"mean"}},
    {"write `.reshape(...)`", {"view", "flatten"}},
    {"write `scalar(t)`, which reads the element of a tile that has only one", {"item"}},
    {"write `select(condition, a, b)`", {"where", "masked_fill"}},
};

const Group tensorMethods[] = {
    {"write `.to(float32)`, with the dtype that you want",
     {"cast", "astype", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long"}},
    {"write `zeros_like(x)` or `full_like(x, value)`",
     {"new_zeros", "new_full", "new_ones", "zero_", "fill_", "zeros_like", "full_like"}},
    {"write `empty_like(x)` or `empty(n, m, dtype=x.dtype)`", {"new_empty", "empty_like"}},
    {"write `x.shape`", {"size"}},
};

template <size_t Count> std::string_view adviceFor(const Group (&groups)[Count], std::string_view name) {
  for (const Group &group : groups)
    for (std::string_view foreign : group.names)
      if (foreign == name)
        return group.advice;
  return "";
}

} // namespace

std::string_view kpkg::compiler::adviceForForeignName(std::string_view name) { return adviceFor(names, name); }

std::string_view kpkg::compiler::adviceForForeignTileMethod(std::string_view name) {
  return adviceFor(tileMethods, name);
}

std::string_view kpkg::compiler::adviceForForeignTensorMethod(std::string_view name) {
  return adviceFor(tensorMethods, name);
}

bool kpkg::compiler::isForeignKernelDecorator(std::string_view name) {
  for (std::string_view foreign : {"triton.jit", "jit", "cuda.jit", "numba.cuda.jit", "compiler.register", "global"})
    if (foreign == name)
      return true;
  return false;
}
