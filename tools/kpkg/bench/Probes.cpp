// Compiles the kernels that measure a device's limits, which the runtime runs like any package.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/bench/Probes.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/diag/Render.h"
#include "compiler/driver/Compile.h"
#include "compiler/source/Source.h"

namespace kpkg::command::bench {

namespace {

/// On a CPU, 8 is the smallest width of a tile in registers; on a GPU, the threads of a block share a tile. The width
/// and the number of chains that fill a processor's units without spilling depend on its registers and latencies. So
/// each combination is tried.
constexpr const char *Source = R"k(
comptime ON_GPU = target.has("gpu")

@kernel
@specialize(T=[float32, float64], WIDE=[False, True], MANY=[False, True])
def multiply_adds[T: DType, WIDE: Bool, MANY: Bool](mut y: Tensor[T, 1], steps: Int, scale: Float64, shift: Float64):
    comptime W = (2048 if WIDE else 1024) if ON_GPU else (16 if WIDE else 8)
    var a = scale.cast[T]()
    var b = shift.cast[T]()
    var v0 = full[T](0.0, W)
    var v1 = full[T](1.0, W)
    var v2 = full[T](2.0, W)
    var v3 = full[T](3.0, W)
    var v4 = full[T](4.0, W)
    var v5 = full[T](5.0, W)
    var v6 = full[T](6.0, W)
    var v7 = full[T](7.0, W)
    var v8 = full[T](8.0, W)
    var v9 = full[T](9.0, W)
    for i in range(steps):
        v0 = fma(v0, a, b)
        v1 = fma(v1, a, b)
        v2 = fma(v2, a, b)
        v3 = fma(v3, a, b)
        v4 = fma(v4, a, b)
        comptime if MANY:
            v5 = fma(v5, a, b)
            v6 = fma(v6, a, b)
            v7 = fma(v7, a, b)
            v8 = fma(v8, a, b)
            v9 = fma(v9, a, b)
    y.tile[W](block_idx.x).store(v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7 + v8 + v9)

@register.op("limits::multiply_add")
def multiply_add(mut y: Tensor, wide: Bool, many: Bool, steps: Int, blocks: Int):
    launch multiply_adds[T=y.dtype, WIDE=wide, MANY=many](y, steps, 0.5, 0.25, grid=blocks)

@kernel
@specialize(WIDE=[False, True])
def copy_tiles[WIDE: Bool](x: Tensor[float32, 1], mut y: Tensor[float32, 1]):
    comptime N = (8192 if WIDE else 4096) if ON_GPU else (32768 if WIDE else 16384)
    y.tile[N](block_idx.x).store(x.tile[N](block_idx.x).load())

@register.op("limits::copy")
def copy(x: Tensor, mut y: Tensor, wide: Bool, blocks: Int):
    launch copy_tiles[WIDE=wide](x, y, grid=blocks)
)k";

} // namespace

Result<Library> compileProbes(bool forGpu) {
  compiler::CompileOptions options;
  options.texts = {{"limits.k", Source}};
  if (forGpu)
    options.targets = {"ptx"};
  options.jobs = 1;
  compiler::SourceManager sources;
  compiler::DiagnosticEngine diags;
  auto package = compiler::compile(options, sources, diags);
  auto fail = [](const std::string &why) {
    return Error{KPKG_ERROR_INTERNAL, "cannot measure what this device can do: " + why, {}, {}, {}};
  };
  if (!package)
    return fail(llvm::toString(package.takeError()));
  if (!*package)
    return fail(compiler::renderText(diags, sources));
  // Kept forever, because the library's memory must be.
  return Library::openMemory(*new std::string(std::move(**package)), "limits");
}

} // namespace kpkg::command::bench
