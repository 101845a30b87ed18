// Measures the limits of a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/bench/DeviceLimits.h"
#include "tools/kpkg/bench/PairProducts.h"
#include "tools/kpkg/bench/Probes.h"
#include "tools/kpkg/bench/Timing.h"
#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <unistd.h>

namespace kpkg::command::bench {

namespace {

std::string processorName() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "CPU";
}

int64_t positiveSetting(int name) { return std::max<int64_t>(sysconf(name), 0); }

/// Returns the bytes of each of the copy's two buffers: four times the last-level cache, between 256 MiB and 512 MiB.
/// Caches are smaller than 512 MiB, but systems may report too much for shared ones. The result is at most a quarter of
/// the free memory.
int64_t copyBytes(const Place &place) {
  int64_t cache = 0, available = 0;
  auto info = describeDevice(place.device);
  if (place.isCuda() && info) {
    cache = int64_t(info->cache_bytes), available = int64_t(info->memory_bytes);
  } else {
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache = std::max(positiveSetting(_SC_LEVEL3_CACHE_SIZE), positiveSetting(_SC_LEVEL2_CACHE_SIZE));
#endif
    available = positiveSetting(_SC_AVPHYS_PAGES) * positiveSetting(_SC_PAGESIZE);
  }
  int64_t wanted = std::clamp<int64_t>(4 * cache, int64_t(256) << 20, int64_t(512) << 20);
  return std::clamp<int64_t>(available / 4, int64_t(16) << 20, wanted) >> 20 << 20;
}

Result<Tensor> allocate(const Place &place, DType dtype, int64_t count) {
  return Tensor::empty(dtype, {count}, place.device, place.stream);
}

/// Measures the fastest of kpkg's kernels and, on a GPU, of the driver's copy.
Result<Limit> measureCopy(const Place &place, const Library &library) {
  auto op = library.op("copy");
  if (!op)
    return op.error();
  int64_t bytes = copyBytes(place);
  auto x = allocate(place, DType::Float32, bytes / 4), y = allocate(place, DType::Float32, bytes / 4);
  if (!x || !y)
    return x ? y.error() : x.error();
  ProbeTiles tiles = probeTiles(place.isCuda());
  auto copy = [&](const Tensor &from, const Tensor &to, bool wide) -> Status {
    int64_t blocks = (bytes / 4 + tiles.copy[wide] - 1) / tiles.copy[wide];
    auto done = op->call(place.stream, {from, to}, {{"wide", wide}, {"blocks", blocks}});
    return done ? Status() : Status(done.error());
  };
  // Memory that was never written is one shared page of zeros, which copies need not load. So the threads write both
  // buffers first.
  for (const auto &[from, to] : {std::pair(*x, *y), std::pair(*y, *x)})
    if (Status status = copy(from, to, false); !status)
      return status.error();
  Limit best;
  auto measure = [&](const std::function<Status()> &call, const std::string &who) -> Status {
    auto samples = sample(place, call, 9);
    if (!samples)
      return samples.error();
    double rate = 2.0 * double(bytes) / samples->fastest;
    if (rate > best.perSecond)
      best = {rate, fmt::format("copy of {} MiB by {}, bytes read plus bytes written, fastest of {}", bytes >> 20, who,
                                samples->count)};
    return {};
  };
  std::string threads = place.isCuda() ? "a kpkg kernel" : fmt::format("{} threads", kpkg_cpu_threads());
  Status status;
  for (bool wide : {false, true})
    if (status)
      status = measure([&] { return copy(*x, *y, wide); }, threads);
  if (status && place.isCuda())
    status = measure(
        [&] {
          return Status::from(
              kpkg_memory_copy(place.device, y->data(), place.device, x->data(), size_t(bytes), place.stream.handle));
        },
        "the driver");
  if (!status)
    return status.error();
  return best;
}

/// Measures the fastest combination of width and chains.
Result<Limit> measureArithmetic(const Place &place, const Library &library, DType dtype) {
  auto op = library.op("multiply_add");
  auto info = describeDevice(place.device);
  if (!op || !info)
    return op ? info.error() : op.error();
  ProbeTiles tiles = probeTiles(place.isCuda());
  int64_t blocks = int64_t(info->processors) * 16;
  // It is also large enough for the runtime to wake all threads.
  auto y = allocate(place, dtype, std::max<int64_t>(blocks * tiles.multiplyAdd[1], 1 << 16));
  if (!y)
    return y.error();
  Limit best;
  for (bool wide : {false, true})
    for (bool many : {false, true}) {
      auto timed = [&](int64_t steps, int repeats) {
        return sample(
            place,
            [&]() -> Status {
              auto done =
                  op->call(place.stream, {*y}, {{"wide", wide}, {"many", many}, {"steps", steps}, {"blocks", blocks}});
              return done ? Status() : Status(done.error());
            },
            repeats);
      };
      int64_t trial = place.isCuda() ? 1000 : 20000;
      auto tried = timed(trial, 1);
      if (!tried)
        return tried.error();
      auto steps = int64_t(double(trial) * std::clamp(10e-3 / tried->median, 1.0, 1000.0));
      auto samples = timed(steps, 7);
      if (!samples)
        return samples.error();
      double flops = 2.0 * double(tiles.multiplyAdd[wide]) * (many ? 10 : 5) * double(steps) * double(blocks);
      best.perSecond = std::max(best.perSecond, flops / samples->fastest);
    }
  const char *name = kpkg_dtype_name(int32_t(dtype));
  best.how =
      place.isCuda()
          ? fmt::format("{} multiply-adds in registers (two operations each) on CUDA cores, fastest of four loops",
                        name)
          : fmt::format(
                "{} multiply-adds in registers (two operations each) by {} threads, fastest of four loops compiled "
                "for {}",
                name, kpkg_cpu_threads(), kpkg_cpu_target(0));
  return best;
}

} // namespace

Result<DeviceLimits> measureLimits(const Place &place, const std::set<DType> &dtypes) {
  auto library = compileProbes(place.isCuda());
  if (!library)
    return library.error();
  DeviceLimits limits;
  limits.device = place.isCuda() ? place.name
                                 : fmt::format("{}, {}, {} thread{}", processorName(), kpkg_cpu_target(0),
                                               kpkg_cpu_threads(), kpkg_cpu_threads() == 1 ? "" : "s");
  auto copy = measureCopy(place, *library);
  if (!copy)
    return copy.error();
  limits.copy = std::move(*copy);
  std::map<DType, Limit> measured;
  for (DType dtype : dtypes) {
    if (dtype == DType::BFloat16 && !place.isCuda())
      if (std::optional<Limit> pairs = measurePairProducts()) {
        limits.arithmetic.push_back({dtype, std::move(*pairs)});
        continue;
      }
    // Other narrow types are computed in float32.
    DType computed = dtype == DType::Float64 ? DType::Float64 : DType::Float32;
    if (!measured.contains(computed)) {
      auto limit = measureArithmetic(place, *library, computed);
      if (!limit)
        return limit.error();
      measured.emplace(computed, std::move(*limit));
    }
    limits.arithmetic.push_back({dtype, measured.at(computed)});
  }
  return limits;
}

} // namespace kpkg::command::bench
