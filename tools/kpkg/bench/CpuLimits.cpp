// The limits of this machine's CPU, measured by kernels that are compiled here and run by the runtime like those of any
// package. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Diagnostics.h"
#include "compiler/diag/Render.h"
#include "compiler/driver/Compile.h"
#include "compiler/source/Source.h"
#include "tools/kpkg/bench/DeviceLimits.h"
#include "tools/kpkg/bench/Timing.h"
#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <unistd.h>

namespace kpkg::command::bench {

namespace {

/// A width of 8 is the least that a tile has in registers. Which width and how many chains fill a processor's units
/// without spilling depends on its registers and latencies, so each combination is tried.
constexpr const char *Source = R"k(
@kernel
@specialize(T=[float32, float64], WIDE=[False, True], MANY=[False, True])
fn multiply_adds[T: DType, WIDE: Bool, MANY: Bool](mut y: Tensor[T, 1], steps: Int, scale: Float64, shift: Float64):
    comptime W = 16 if WIDE else 8
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
fn multiply_add(mut y: Tensor, wide: Bool, many: Bool, steps: Int, blocks: Int):
    launch multiply_adds[T=y.dtype, WIDE=wide, MANY=many](y, steps, 0.5, 0.25, grid=blocks)

@kernel
fn copy_tiles(x: Tensor[float32, 1], mut y: Tensor[float32, 1]):
    y.tile[16384](block_idx.x).store(x.tile[16384](block_idx.x).load())

@register.op("limits::copy")
fn copy(x: Tensor, mut y: Tensor):
    launch copy_tiles(x, y, grid=ceildiv(x.shape[0], 16384))
)k";

/// The package's bytes.
Result<std::string> compileProbes() {
  compiler::CompileOptions options;
  options.texts = {{"limits.k", Source}};
  options.jobs = 1;
  compiler::SourceManager sources;
  compiler::DiagnosticEngine diags;
  auto package = compiler::compile(options, sources, diags);
  auto fail = [](const std::string &why) {
    return Error{KPKG_ERROR_INTERNAL, "cannot measure what this CPU can do: " + why, {}, {}, {}};
  };
  if (!package)
    return fail(llvm::toString(package.takeError()));
  if (!*package)
    return fail(compiler::renderText(diags, sources));
  return std::move(**package);
}

std::string processorName() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "CPU";
}

int64_t positiveSetting(int name) { return std::max<int64_t>(sysconf(name), 0); }

/// Bytes of each of the copy's two buffers: four times the last cache, but no less than 256 MiB and no more than 512
/// MiB (which is larger than the caches, while what systems say about shared caches may be too much), and at most a
/// quarter of the free memory.
int64_t copyBytes() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  int64_t cache = std::max(positiveSetting(_SC_LEVEL3_CACHE_SIZE), positiveSetting(_SC_LEVEL2_CACHE_SIZE));
#else
  int64_t cache = 0;
#endif
  int64_t available = positiveSetting(_SC_AVPHYS_PAGES) * positiveSetting(_SC_PAGESIZE);
  int64_t wanted = std::clamp<int64_t>(4 * cache, int64_t(256) << 20, int64_t(512) << 20);
  return std::clamp<int64_t>(available / 4, int64_t(16) << 20, wanted) >> 20 << 20;
}

Result<Limit> measureCopy(const Library &library) {
  auto op = library.op("copy");
  if (!op)
    return op.error();
  int64_t bytes = copyBytes();
  Tensor x = Tensor::empty(DType::Float32, {bytes / 4}), y = Tensor::empty(DType::Float32, {bytes / 4});
  auto copy = [&](const Tensor &from, const Tensor &to) -> Status {
    auto done = op->call({}, {from, to});
    return done ? Status() : Status(done.error());
  };
  // Memory that was never written is one shared page of zeros, which no copy has to fetch. The threads write both
  // buffers first.
  for (auto [from, to] : {std::pair(x, y), std::pair(y, x)})
    if (Status status = copy(from, to); !status)
      return status.error();
  auto samples = sample([&] { return copy(x, y); }, 9);
  if (!samples)
    return samples.error();
  return Limit{2.0 * double(bytes) / samples->fastest,
               fmt::format("copy of {} MiB by {} threads, bytes read plus bytes written, fastest of {}", bytes >> 20,
                           kpkg_cpu_threads(), samples->count)};
}

/// The fastest combination of width and chains.
Result<Limit> measureArithmetic(const Library &library, DType dtype) {
  auto op = library.op("multiply_add");
  if (!op)
    return op.error();
  int64_t blocks = int64_t(kpkg_cpu_threads()) * 16;
  // Also large enough that the runtime thinks all threads worth waking.
  Tensor y = Tensor::empty(dtype, {std::max<int64_t>(blocks * 16, 1 << 16)});
  Limit best;
  for (bool wide : {false, true})
    for (bool many : {false, true}) {
      auto timed = [&](int64_t steps, int repeats) {
        return sample(
            [&]() -> Status {
              auto done = op->call({}, {y}, {{"wide", wide}, {"many", many}, {"steps", steps}, {"blocks", blocks}});
              return done ? Status() : Status(done.error());
            },
            repeats);
      };
      constexpr int64_t trial = 20000;
      auto tried = timed(trial, 1);
      if (!tried)
        return tried.error();
      auto steps = int64_t(double(trial) * std::max(1.0, 10e-3 / tried->median));
      auto samples = timed(steps, 7);
      if (!samples)
        return samples.error();
      double flops = 2.0 * (wide ? 16 : 8) * (many ? 10 : 5) * double(steps) * double(blocks);
      best.perSecond = std::max(best.perSecond, flops / samples->fastest);
    }
  best.how = fmt::format(
      "{} multiply-adds in registers (two operations each) by {} threads, fastest of four loops compiled for {}",
      kpkg_dtype_name(int32_t(dtype)), kpkg_cpu_threads(), kpkg_cpu_target(0));
  return best;
}

} // namespace

Result<DeviceLimits> measureCpuLimits(const std::set<DType> &dtypes) {
  auto package = compileProbes();
  if (!package)
    return package.error();
  auto library = Library::openMemory(*package, "limits");
  if (!library)
    return library.error();
  DeviceLimits limits;
  limits.device = fmt::format("{}, {}, {} thread{}", processorName(), kpkg_cpu_target(0), kpkg_cpu_threads(),
                              kpkg_cpu_threads() == 1 ? "" : "s");
  auto copy = measureCopy(*library);
  if (!copy)
    return copy.error();
  limits.copy = std::move(*copy);
  std::map<DType, Limit> measured;
  for (DType dtype : dtypes) {
    // The narrower types are widened to float32 to be computed with.
    DType computed = dtype == DType::Float64 ? DType::Float64 : DType::Float32;
    if (!measured.contains(computed)) {
      auto limit = measureArithmetic(*library, computed);
      if (!limit)
        return limit.error();
      measured.emplace(computed, std::move(*limit));
    }
    limits.arithmetic.push_back({dtype, measured.at(computed)});
  }
  return limits;
}

} // namespace kpkg::command::bench
