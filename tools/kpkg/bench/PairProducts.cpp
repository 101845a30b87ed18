// Measures how fast a CPU multiplies pairs of bfloat16 numbers, by vectors or by tiles of AMX.
//
// The .k language has this instruction only in matrix products, which also move operands. So the loop is written here.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/bench/PairProducts.h"
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <fmt/format.h>
#include <string_view>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kpkg::command::bench {

#if defined(__x86_64__)

namespace {

/// Sixteen sums with two products each, an addition and a multiplication each.
constexpr double OperationsPerInstruction = 16 * 2 * 2;

/// Computes `Chains` independent sums.
template <int Chains> __attribute__((target("avx512f,avx512bf16"))) float multiplyPairs(int64_t steps) {
  __m512 sums[Chains];
  for (int i = 0; i < Chains; ++i)
    sums[i] = _mm512_set1_ps(float(i));
  __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
  __m512bh b = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.125f), _mm512_set1_ps(-0.25f));
  for (int64_t step = 0; step < steps; ++step)
#pragma GCC unroll 16
    for (int i = 0; i < Chains; ++i)
      sums[i] = _mm512_dpbf16_ps(sums[i], a, b);
  __m512 total = sums[0];
  for (int i = 1; i < Chains; ++i)
    total = _mm512_add_ps(total, sums[i]);
  return _mm512_reduce_add_ps(total);
}

/// Additions and multiplications of a product of tiles of 16 x 32 and 32 x 16 numbers.
constexpr double OperationsPerTile = 16.0 * 16 * 32 * 2;
constexpr int TileSums = 4;

/// Computes `TileSums` independent sums of products of tiles.
__attribute__((target("amx-tile,amx-bf16"))) float multiplyTiles(int64_t steps) {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  } settings;
  static_assert(sizeof settings == 64);
  _tile_loadconfig(&settings);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (int64_t step = 0; step < steps; ++step) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_release();
  return 0;
}

/// Returns the seconds that all threads take for `steps` each.
double secondsOf(float (*loop)(int64_t), int64_t steps) {
  int threads = std::max(kpkg_cpu_threads(), 1);
  std::barrier ready(threads + 1), done(threads + 1);
  std::atomic<float> result = 0; // keeps the compiler from removing the loop
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i)
    workers.emplace_back([&] {
      ready.arrive_and_wait();
      result.store(loop(steps), std::memory_order_relaxed);
      done.arrive_and_wait();
    });
  ready.arrive_and_wait();
  auto start = std::chrono::steady_clock::now();
  done.arrive_and_wait();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (std::thread &worker : workers)
    worker.join();
  return seconds;
}

/// Returns the operations a second of all threads, for a loop of so many operations a step.
double fastestRate(float (*loop)(int64_t), double operations) {
  constexpr int64_t trial = 20000;
  constexpr int repeats = 7;
  auto steps = int64_t(double(trial) * std::clamp(10e-3 / secondsOf(loop, trial), 1.0, 1000.0));
  double fastest = secondsOf(loop, steps);
  for (int i = 1; i < repeats; ++i)
    fastest = std::min(fastest, secondsOf(loop, steps));
  return operations * double(steps) * kpkg_cpu_threads() / fastest;
}

} // namespace

std::optional<Limit> measurePairProducts() {
  const char *target = kpkg_cpu_target(0);
  std::string_view best = target ? target : "";
  if (best == "x86-64-v4-amx")
    return Limit{
        fastestRate(multiplyTiles, OperationsPerTile * TileSums),
        fmt::format("products of tiles of bfloat16 added to float32 in registers, by {} threads", kpkg_cpu_threads())};
  if (best != "x86-64-v4-bf16")
    return std::nullopt;
  double rate = 0;
  for (auto [chains, loop] : std::initializer_list<std::pair<int, float (*)(int64_t)>>{
           {8, multiplyPairs<8>}, {12, multiplyPairs<12>}, {16, multiplyPairs<16>}})
    rate = std::max(rate, fastestRate(loop, OperationsPerInstruction * chains));
  return Limit{rate, fmt::format("products of bfloat16 pairs added to float32 in registers (four operations for each "
                                 "sum) by {} threads, fastest of three loops",
                                 kpkg_cpu_threads())};
}

#else

std::optional<Limit> measurePairProducts() { return std::nullopt; }

#endif

} // namespace kpkg::command::bench
