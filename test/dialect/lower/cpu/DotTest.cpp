// Tests dots of every element type, layout and edge against a plain triple loop, and the microkernel's machine code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/dialect/lower/cpu/DotModule.h"
#include "llvm/TargetParser/Host.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace mlir;
using namespace kpkg;
using lower::cpu::DotPlan;
using lower::cpu::DotShape;
using lower::cpu::planDot;
using lower::cpu::VectorUnit;

namespace {

constexpr VectorUnit avx2{32, 16, true}, avx512{64, 32, true}, avx512Pairs{64, 32, true, true},
    amx{64, 32, true, true, true};

/// Returns whether this processor has AMX with products of bf16, and Linux lets this process use it.
bool mayUseTiles() {
  constexpr int requestState = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM
  return llvm::sys::getHostCPUFeatures().lookup("amx-bf16") && ::syscall(SYS_arch_prctl, requestState, tileData) == 0;
}

enum class Element { F16, BF16, F32, F64 };

Type typeOf(MLIRContext *context, Element element) {
  switch (element) {
  case Element::F16:
    return Float16Type::get(context);
  case Element::BF16:
    return BFloat16Type::get(context);
  case Element::F32:
    return Float32Type::get(context);
  case Element::F64:
    return Float64Type::get(context);
  }
  llvm_unreachable("no such element");
}

size_t sizeOf(Element element) { return element == Element::F64 ? 8 : element == Element::F32 ? 4 : 2; }

/// Writes `value`, a small multiple of 1/8 that every format holds exactly.
void put(void *memory, size_t position, Element element, double value) {
  float single = float(value);
  uint32_t bits;
  std::memcpy(&bits, &single, 4);
  switch (element) {
  case Element::F16: {
    _Float16 half = _Float16(value);
    std::memcpy(static_cast<char *>(memory) + 2 * position, &half, 2);
    return;
  }
  case Element::BF16:
    static_cast<uint16_t *>(memory)[position] = uint16_t(bits >> 16);
    return;
  case Element::F32:
    static_cast<float *>(memory)[position] = single;
    return;
  case Element::F64:
    static_cast<double *>(memory)[position] = value;
    return;
  }
}

/// A matrix with NaN guard elements around the readable part, so that reads outside show.
struct Matrix {
  std::vector<double> values; ///< The tile, zero outside the bounds.
  std::vector<char> memory;
  test::DotArgument argument;

  Matrix(Element element, int64_t rows, int64_t columns, std::array<int64_t, 2> stride, std::array<int64_t, 2> begin,
         std::array<int64_t, 2> end, int64_t seed)
      : values(rows * columns) {
    int64_t lowest = 0, highest = 0;
    for (int64_t i : {int64_t(0), rows - 1})
      for (int64_t j : {int64_t(0), columns - 1}) {
        lowest = std::min(lowest, i * stride[0] + j * stride[1]);
        highest = std::max(highest, i * stride[0] + j * stride[1]);
      }
    memory.resize((highest - lowest + 1) * sizeOf(element));
    for (int64_t i = 0; i <= highest - lowest; ++i)
      put(memory.data(), i, element, NAN);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        if (i >= begin[0] && i < end[0] && j >= begin[1] && j < end[1]) {
          // With a stride of 0 several elements share a location, so the value depends on the location.
          int64_t place = i * stride[0] + j * stride[1] - lowest;
          double value = int((place * 7 + place / 5 + seed) % 17 - 8) / 8.0;
          put(memory.data(), place, element, value);
          values[i * columns + j] = value;
        }
    argument = {memory.data() - lowest * int64_t(sizeOf(element)),
                {stride[0], stride[1]},
                {begin[0], begin[1]},
                {end[0], end[1]}};
  }
};

struct Aligned {
  explicit Aligned(size_t bytes) : data(std::aligned_alloc(64, (bytes + 127) / 64 * 64)) {}
  ~Aligned() { std::free(data); }
  void *data;
};

class DotUnderTest {
public:
  /// Multiplies bf16 pairs on a `unit` that does.
  DotUnderTest(int64_t m, int64_t n, int64_t k, Element element, const VectorUnit &unit = avx2)
      : element(element), context(test::makeContext()) {
    Type acc = element == Element::F64 ? Type(Float64Type::get(context.get())) : Float32Type::get(context.get());
    plan = planDot(DotShape{m, n, k, acc, unit.multipliesPairs && element == Element::BF16}, unit);
    OwningOpRef<ModuleOp> module = test::makeDotModule(context.get(), plan, typeOf(context.get(), element));
    jit = std::make_unique<test::HostJit>(*module);
    function = jit->find<test::DotFunction>("dot");
  }

  void check(std::array<int64_t, 2> strideA, std::array<int64_t, 2> strideB, std::array<int64_t, 2> beginA,
             std::array<int64_t, 2> endA, std::array<int64_t, 2> beginB, std::array<int64_t, 2> endB) {
    int64_t m = plan.shape.m, n = plan.shape.n, k = plan.shape.k;
    Matrix a(element, m, k, strideA, beginA, endA, 3), b(element, k, n, strideB, beginB, endB, 11);
    size_t bytes = element == Element::F64 ? 8 : 4;
    Element accElement = element == Element::F64 ? Element::F64 : Element::F32;
    Aligned scratch(plan.scratchBytes()), sums((m * n + 64) * bytes);
    for (int64_t i = 0; i < m * n + 64; ++i)
      put(sums.data, i, accElement, i % 5);
    std::memset(scratch.data, 0xff, plan.scratchBytes());
    function(&a.argument, &b.argument, sums.data, scratch.data);
    auto sum = [&](int64_t i) {
      return bytes == 8 ? static_cast<double *>(sums.data)[i] : static_cast<float *>(sums.data)[i];
    };
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double expected = (i * n + j) % 5;
        for (int64_t l = 0; l < k; ++l)
          expected += a.values[i * k + l] * b.values[l * n + j];
        ASSERT_EQ(sum(i * n + j), expected) << "element " << i << ", " << j << " of " << m << "x" << n << "x" << k;
      }
    for (int64_t i = m * n; i < m * n + 64; ++i)
      ASSERT_EQ(sum(i), i % 5) << "written past the end";
  }

  /// Checks all combinations of layouts, whole and clipped.
  void checkLayouts() {
    int64_t m = plan.shape.m, n = plan.shape.n, k = plan.shape.k;
    std::array<int64_t, 2> layoutsA[] = {{k + 3, 1}, {1, m + 5}, {2 * k + 6, 2}, {-k - 1, 1}, {0, 1}};
    std::array<int64_t, 2> layoutsB[] = {{n + 3, 1}, {1, k + 5}, {3 * n, 3}, {-n, 1}, {1, 0}};
    for (auto &a : layoutsA)
      for (auto &b : layoutsB) {
        if (&a - layoutsA > 2 && &b - layoutsB > 0)
          continue;
        check(a, b, {0, 0}, {m, k}, {0, 0}, {k, n});
        if (a[0] == 0 || b[1] == 0)
          continue;
        check(a, b, {0, 0}, {m - 1, k - 1}, {0, 0}, {k - 1, n - 1});
        check(a, b, {0, 0}, {m + 9, (k + 1) / 2}, {0, 0}, {k + 9, (n + 1) / 2});
        check(a, b, {1, 2}, {m, k}, {2, 1}, {k, n});
        check(a, b, {-4, -1}, {m / 3, k}, {0, 0}, {k / 2, n});
        check(a, b, {0, 0}, {0, k}, {0, 0}, {k, -3});
      }
  }

  DotPlan plan;

private:
  Element element;
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<test::HostJit> jit;
  test::DotFunction *function;
};

TEST(Dot, SingleRegisterTile) { DotUnderTest(6, 16, 8, Element::F32).checkLayouts(); }
TEST(Dot, SeveralPanels) { DotUnderTest(24, 64, 40, Element::F32).checkLayouts(); }
TEST(Dot, PanelsThatStickOut) { DotUnderTest(37, 41, 43, Element::F32).checkLayouts(); }
TEST(Dot, OneElement) { DotUnderTest(1, 1, 1, Element::F32).checkLayouts(); }
TEST(Dot, OneRow) { DotUnderTest(1, 33, 50, Element::F32).checkLayouts(); }
TEST(Dot, FewRowsInPlace) { // With masks, and where they are missing, with whole vectors.
  DotUnderTest(5, 37, 43, Element::F32).checkLayouts();
  DotUnderTest(16, 26, 9, Element::F64).checkLayouts();
  DotUnderTest(7, 48, 64, Element::F16).checkLayouts();
  DotUnderTest(8, 21, 30, Element::BF16).checkLayouts();
}
TEST(Dot, OneColumn) { DotUnderTest(50, 1, 33, Element::F32).checkLayouts(); }
TEST(Dot, SeveralDepthAndRowBlocks) {
  DotUnderTest(300, 20, 700, Element::F32).check({700, 1}, {20, 1}, {0, 0}, {300, 699}, {0, 0}, {700, 20});
}
TEST(Dot, Float64) { DotUnderTest(19, 21, 23, Element::F64).checkLayouts(); }
TEST(Dot, Float16) { DotUnderTest(19, 21, 23, Element::F16).checkLayouts(); }
TEST(Dot, PairsOfBFloat16) {
  if (!__builtin_cpu_supports("avx512bf16"))
    GTEST_SKIP() << "no AVX512-BF16 here";
  DotUnderTest(32, 48, 40, Element::BF16, avx512Pairs).checkLayouts();
  DotUnderTest(37, 41, 43, Element::BF16, avx512Pairs).checkLayouts();
  DotUnderTest(13, 33, 601, Element::BF16, avx512Pairs).checkLayouts();
}
TEST(Dot, TilesOfBFloat16) {
  if (!mayUseTiles())
    GTEST_SKIP() << "no AMX-BF16 here";
  DotUnderTest(32, 32, 32, Element::BF16, amx).checkLayouts();
  DotUnderTest(64, 96, 64, Element::BF16, amx).checkLayouts();
  DotUnderTest(37, 41, 43, Element::BF16, amx).checkLayouts();
  DotUnderTest(50, 9, 70, Element::BF16, amx).checkLayouts();
  DotUnderTest(100, 65, 601, Element::BF16, amx).checkLayouts();
  DotUnderTest(300, 70, 1300, Element::BF16, amx).check({1300, 1}, {70, 1}, {0, 0}, {300, 1299}, {0, 0}, {1300, 70});
}
TEST(Dot, TilesOfFewRowsInPlace) {
  if (!mayUseTiles())
    GTEST_SKIP() << "no AMX-BF16 here";
  DotUnderTest(16, 64, 96, Element::BF16, amx).checkLayouts();
  DotUnderTest(5, 32, 64, Element::BF16, amx).checkLayouts();
  DotUnderTest(8, 96, 1344, Element::BF16, amx).checkLayouts();
  DotUnderTest(64, 64, 64, Element::BF16, amx).check({64, 1}, {1, 64}, {0, 0}, {7, 64}, {0, 0}, {64, 64});
}
TEST(Dot, PanelsOfWideVectorsThatStickOut) {
  if (!__builtin_cpu_supports("avx512bw"))
    GTEST_SKIP() << "no AVX-512 here";
  for (Element element : {Element::F32, Element::F64, Element::F16, Element::BF16})
    DotUnderTest(37, 41, 43, element, avx512).checkLayouts();
}
TEST(Dot, BFloat16) { DotUnderTest(32, 48, 40, Element::BF16).checkLayouts(); }

/// Returns the seconds of the fastest of several runs.
template <typename Run> double fastest(int runs, Run run) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    run();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    best = std::min(best, double(end.tv_sec - begin.tv_sec) + 1e-9 * double(end.tv_nsec - begin.tv_nsec));
  }
  return best;
}

/// Measures a whole product by tiles, as a kernel computes it. Run by hand: --gtest_also_run_disabled_tests
/// --gtest_filter=*Speed*
void measure(Element element, int64_t size, int64_t bm, int64_t bn, int64_t bk, bool transposedB = false,
             const VectorUnit &unit = avx2) {
  auto context = test::makeContext();
  Type acc = element == Element::F64 ? Type(Float64Type::get(context.get())) : Float32Type::get(context.get());
  DotPlan plan = planDot(DotShape{bm, bn, bk, acc, unit.multipliesPairs && element == Element::BF16}, unit);
  std::unique_ptr<test::HostJit> jit;
  double compile = fastest(1, [&] {
    OwningOpRef<ModuleOp> module = test::makeDotModule(context.get(), plan, typeOf(context.get(), element));
    jit = std::make_unique<test::HostJit>(*module, unit.vectorBytes == 32 ? "x86-64-v3" : "");
  });
  auto *dot = jit->find<test::DotFunction>("dot");
  Aligned a(size * size * 8), b(size * size * 8), c(bm * bn * 8), scratch(plan.scratchBytes());
  std::memset(a.data, 0, size * size * 8);
  std::memset(b.data, 0, size * size * 8);
  int64_t bytes = sizeOf(element);
  double seconds = fastest(size > 1500 ? 2 : 6, [&] {
    for (int64_t m = 0; m < size; m += bm)
      for (int64_t n = 0; n < size; n += bn) {
        std::memset(c.data, 0, bm * bn * (element == Element::F64 ? 8 : 4));
        for (int64_t k = 0; k < size; k += bk) {
          test::DotArgument x{
              static_cast<char *>(a.data) + bytes * (m * size + k), {size, 1}, {-m, -k}, {size - m, size - k}};
          test::DotArgument y{static_cast<char *>(b.data) + bytes * (transposedB ? n * size + k : k * size + n),
                              {transposedB ? 1 : size, transposedB ? size : 1},
                              {-k, -n},
                              {size - k, size - n}};
          dot(&x, &y, c.data, scratch.data);
        }
      }
  });
  printf("%lld^3 tile %lldx%lldx%lld micro %lldx%lld kc %lld mc %lld%s: %.1f GFLOP/s, compiled in %.3f s\n",
         (long long)size, (long long)bm, (long long)bn, (long long)bk, (long long)plan.mr, (long long)plan.nr,
         (long long)plan.kc, (long long)plan.mc, transposedB ? " B^T" : "", 2e-9 * size * size * size / seconds,
         compile);
}

TEST(Dot, DISABLED_Speed) {
  measure(Element::F32, 1024, 256, 256, 256);
  measure(Element::F32, 1024, 128, 256, 256);
  measure(Element::F32, 1000, 256, 256, 256);
  measure(Element::F32, 1024, 192, 256, 256);
  measure(Element::F32, 512, 256, 256, 256);
  measure(Element::F32, 1024, 256, 256, 256, true);
  measure(Element::BF16, 1024, 256, 256, 256);
  measure(Element::F16, 1024, 256, 256, 256);
  measure(Element::F64, 1024, 256, 256, 256);
  measure(Element::F32, 2048, 256, 256, 256);
  if (!mayUseTiles())
    return;
  for (bool transposedB : {false, true}) {
    measure(Element::BF16, 512, 128, 128, 256, transposedB, amx);
    measure(Element::BF16, 1024, 128, 128, 256, transposedB, amx);
    measure(Element::BF16, 1024, 256, 256, 256, transposedB, amx);
  }
}

} // namespace
