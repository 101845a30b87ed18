// Tests the error of every elementary function against the C library in wider precision, and special values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/math/VectorMath.h"
#include "test/dialect/lower/cpu/HostJit.h"
#include "test/dialect/lower/math/MathErrors.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include <cfenv>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace kpkg;
using test::addFunction;
using test::Build;
using test::ulps;
using test::unary;

namespace {

/// A compiled function on vectors, for this machine.
class Compiled {
public:
  Compiled(Build build, bool wide, int64_t lanes = 8) : context(test::makeContext()) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context.get()));
    addFunction(*module, "f", build, wide, lanes);
    EXPECT_TRUE(succeeded(lower::expandVectorMath(module->getOperation())));
    test::lowerToLLVMDialect(*module);
    jit = std::make_unique<test::HostJit>(*module);
    code = jit->find<void(const void *, const void *, void *, int64_t)>("f");
  }

  template <typename T> std::vector<T> operator()(std::vector<T> x, std::vector<T> y = {}) {
    size_t size = x.size();
    x.resize((size + 63) / 64 * 64, T(1));
    y.resize(x.size(), T(1));
    std::vector<T> result(x.size());
    code(x.data(), y.data(), result.data(), int64_t(x.size()));
    result.resize(size);
    return result;
  }

private:
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<test::HostJit> jit;
  void (*code)(const void *, const void *, void *, int64_t);
};

struct Case {
  const char *name;
  Build build;
  long double (*exact)(long double);
  double exactF64Limit; ///< The bound for f64.
  double limit;         ///< The bound for f32.
  double low, high;     ///< The range of dense samples; special values lie beyond.
};

long double erfExact(long double x) { return erfl(x); }

Value onePlusErf(OpBuilder &b, Location loc, Value x) {
  Value one = arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getOneAttr(x.getType())));
  return arith::AddFOp::create(b, loc, math::ErfOp::create(b, loc, x), one);
}

const Case cases[] = {
    {"exp", unary<math::ExpOp>, expl, 1.1, 1.1, -750, 715},
    {"exp2", unary<math::Exp2Op>, exp2l, 1.1, 1.1, -1080, 1030},
    {"log", unary<math::LogOp>, logl, 1, 1, 0, 10},
    {"log2", unary<math::Log2Op>, log2l, 1, 1, 0, 10},
    {"tanh", unary<math::TanhOp>, tanhl, 3, 3, -22, 22},
    {"erf", unary<math::ErfOp>, erfExact, 1.1, 1.1, -7, 7},
    {"sin", unary<math::SinOp>, sinl, 1, 1, -1000, 1000},
    {"cos", unary<math::CosOp>, cosl, 1, 1, -1000, 1000},
    {"rsqrt", unary<math::RsqrtOp>, [](long double x) { return x == 0 ? copysignl(INFINITY, x) : 1 / sqrtl(x); }, 1.5,
     1.5, 0, 10},
};

template <typename T> std::vector<T> samples(const Case &test, size_t count) {
  std::vector<T> x = {0,
                      T(-0.0),
                      1,
                      -1,
                      INFINITY,
                      -INFINITY,
                      NAN,
                      std::numeric_limits<T>::min(),
                      -std::numeric_limits<T>::min(),
                      std::numeric_limits<T>::denorm_min(),
                      -std::numeric_limits<T>::denorm_min(),
                      std::numeric_limits<T>::max(),
                      std::numeric_limits<T>::lowest(),
                      std::numeric_limits<T>::epsilon(),
                      T(0.5),
                      T(-0.5),
                      T(2),
                      T(1e-30),
                      T(1e30)};
  for (int n = -160; n <= 160; ++n)
    for (T delta : {T(0), T(1), T(-1)})
      x.push_back(std::nextafter(T(n) * T(0.5), T(n) + delta * 1000));
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) // Where sin or cos cancels.
    x.push_back(T((random() >> (24 + random() % 40)) * 1.5707963267948966192313216916L));
  std::uniform_real_distribution<double> inside(test.low, test.high), small(-1, 1);
  std::uniform_int_distribution<uint64_t> any;
  for (size_t i = 0; i < count; ++i) {
    x.push_back(T(inside(random)));
    x.push_back(T(small(random)));
    x.push_back(T(1 + 0.01 * small(random)));
    // Any bit pattern, so that all exponents are equally likely.
    T pattern;
    uint64_t bits = any(random);
    memcpy(&pattern, &bits, sizeof pattern);
    x.push_back(pattern);
  }
  return x;
}

template <typename T, typename Wide>
double largestError(const Case &test, const std::vector<T> &x, const std::vector<T> &result, T &where) {
  double worst = -1;
  for (size_t i = 0; i < x.size(); ++i) {
    Wide exact = Wide(test.exact(x[i]));
    double error = ulps<T, Wide>(result[i], exact);
    if (result[i] == 0 && exact == 0 && std::signbit(result[i]) != std::signbit(exact))
      error = INFINITY;
    if (error > worst)
      worst = error, where = x[i];
  }
  return worst;
}

class VectorMath : public ::testing::TestWithParam<Case> {};

TEST_P(VectorMath, F32) {
  std::vector<float> x = samples<float>(GetParam(), 200000);
  float where = 0;
  double worst = largestError<float, double>(GetParam(), x, Compiled(GetParam().build, false)(x), where);
  RecordProperty("ulp", std::to_string(worst));
  printf("%s f32: %.3f ulp at %a\n", GetParam().name, worst, double(where));
  EXPECT_LE(worst, GetParam().limit) << GetParam().name << " at " << where;
}

TEST_P(VectorMath, F64) {
  std::vector<double> x = samples<double>(GetParam(), 100000);
  double where = 0;
  double worst = largestError<double, long double>(GetParam(), x, Compiled(GetParam().build, true, 4)(x), where);
  RecordProperty("ulp", std::to_string(worst));
  printf("%s f64: %.3f ulp at %a\n", GetParam().name, worst, where);
  EXPECT_LE(worst, GetParam().exactF64Limit) << GetParam().name << " at " << where;
}

INSTANTIATE_TEST_SUITE_P(Functions, VectorMath, ::testing::ValuesIn(cases), [](auto &info) { return info.param.name; });

/// Tests every `stride`th f32 bit pattern. All patterns take some minutes for each function. Run by hand: KPKG_STRIDE=1
/// VectorMathTest --gtest_also_run_disabled_tests --gtest_filter=*Exhaustive*
TEST_P(VectorMath, DISABLED_Exhaustive) {
  const char *text = getenv("KPKG_STRIDE");
  uint64_t stride = text ? strtoull(text, nullptr, 10) : 1;
  Compiled function(GetParam().build, false);
  double worst = 0;
  float where = 0;
  for (uint64_t begin = 0; begin < uint64_t(1) << 32; begin += stride << 20) {
    std::vector<float> x;
    for (uint64_t bits = begin; bits < std::min(begin + (stride << 20), uint64_t(1) << 32); bits += stride)
      x.push_back(llvm::bit_cast<float>(uint32_t(bits)));
    float at = 0;
    double error = largestError<float, double>(GetParam(), x, function(x), at);
    if (error > worst)
      worst = error, where = at;
  }
  printf("%s f32: %.3f ulp at %a over every %llu numbers\n", GetParam().name, worst, double(where),
         static_cast<unsigned long long>(stride));
  EXPECT_LE(worst, GetParam().limit) << GetParam().name << " at " << where;
}

template <typename T> void checkUnderflow(Build build) {
  std::vector<T> x = {T(-1100), T(-3000), T(-1e30), -INFINITY};
  Compiled function(build, sizeof(T) == 8);
  std::feclearexcept(FE_ALL_EXCEPT);
  std::vector<T> result = function(x);
  EXPECT_EQ(std::fetestexcept(FE_UNDERFLOW), 0);
  EXPECT_EQ(result, std::vector<T>(x.size(), T(0)));
}

/// Intel's CPUs take some hundred cycles for an operation whose result underflows. Masked scores of attention are
/// minus infinity.
TEST(VectorMathUnderflow, PowersThatAreZeroAreNoProducts) {
  checkUnderflow<float>(unary<math::ExpOp>);
  checkUnderflow<float>(unary<math::Exp2Op>);
  checkUnderflow<double>(unary<math::ExpOp>);
  checkUnderflow<double>(unary<math::Exp2Op>);
}

TEST(VectorMathComplement, OnePlusErfDoesNotCancel) {
  Case range{"", nullptr, nullptr, 0, 0, -4.25, 4.25};
  std::vector<float> x = samples<float>(range, 200000), result = Compiled(onePlusErf, false)(x);
  for (size_t i = 0; i < x.size(); ++i) {
    double exact = std::erfc(-double(x[i]));
    if (std::isnan(x[i]))
      ASSERT_TRUE(std::isnan(result[i]));
    else if (exact > 1e-8)
      ASSERT_LE(std::fabs(result[i] / exact - 1), x[i] > -1 ? 0x1p-21 : 0x1p-17) << x[i];
    else
      ASSERT_TRUE(result[i] >= 0 && result[i] <= 2e-8) << x[i] << " gives " << result[i];
  }
  EXPECT_EQ(Compiled(onePlusErf, false)(std::vector<float>{-INFINITY, INFINITY}), (std::vector<float>{0, 2}));
}

template <typename T> void checkPow(double limit) {
  std::vector<T> special = {0,       T(-0.0),  1,         -1,  2,       -2,       3,        -3,   T(0.5),
                            T(-0.5), INFINITY, -INFINITY, NAN, T(1e30), T(1e-30), T(-1e30), T(7), T(1e300)};
  std::vector<T> x, y;
  for (T a : special)
    for (T b : special)
      x.push_back(a), y.push_back(b);
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(-40, 40), base(0, 4);
  for (int i = 0; i < 200000; ++i) {
    x.push_back(T(base(random)));
    y.push_back(T(exponent(random)));
    x.push_back(T(1 + exponent(random) * 1e-6));
    y.push_back(T(exponent(random) * 1e5));
    x.push_back(T(std::exp(exponent(random))));
    y.push_back(T(exponent(random)));
    x.push_back(T(-base(random)));
    y.push_back(T(std::floor(exponent(random))));
  }
  std::vector<T> result = Compiled(nullptr, sizeof(T) == 8, sizeof(T) == 8 ? 4 : 8)(x, y);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    long double exact = powl(x[i], y[i]);
    double error = ulps<T, long double>(result[i], exact);
    ASSERT_LE(error, limit) << x[i] << " ** " << y[i] << " = " << result[i];
    if (result[i] == 0)
      ASSERT_EQ(std::signbit(result[i]), std::signbit(exact)) << x[i] << " ** " << y[i];
    worst = std::max(worst, error);
  }
  printf("powf: %.3f ulp\n", worst);
}

TEST(VectorMathPow, F32) { checkPow<float>(0.51); }
TEST(VectorMathPow, F64) { checkPow<double>(1.5); }

TEST(VectorMathShape, ScalarsAndAnyVectorLength) {
  std::vector<float> x = samples<float>(cases[0], 100);
  std::vector<float> expected = Compiled(cases[0].build, false, 8)(x);
  for (int64_t lanes : {1, 2, 4, 16, 32}) {
    std::vector<float> result = Compiled(cases[0].build, false, lanes)(x);
    EXPECT_EQ(memcmp(result.data(), expected.data(), x.size() * sizeof(float)), 0) << lanes;
  }
}

TEST(VectorMathOnAarch64, SameErrors) {
  llvm::ErrorOr<std::string> compiler = llvm::sys::findProgramByName("aarch64-linux-gnu-gcc");
  llvm::ErrorOr<std::string> emulator = llvm::sys::findProgramByName("qemu-aarch64-static");
  if (!compiler || !emulator)
    GTEST_SKIP() << "needs aarch64-linux-gnu-gcc and qemu-aarch64-static";
  auto context = test::makeContext();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context.get()));
  for (const Case &test : cases) {
    addFunction(*module, std::string(test.name) + "_f32", test.build, false, 4);
    addFunction(*module, std::string(test.name) + "_f64", test.build, true, 2);
  }
  ASSERT_TRUE(succeeded(lower::expandVectorMath(module->getOperation())));
  test::lowerToLLVMDialect(*module);
  SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kpkg-math", folder));
  std::string object = (folder + "/math.o").str(), program = (folder + "/math").str();
  std::ofstream(object, std::ios::binary) << test::objectFor(*module, "aarch64-linux-gnu", "generic", "+neon");
  std::string source = std::string(KPKG_TEST_FOLDER) + "/math_on_target.c";
  ASSERT_EQ(llvm::sys::ExecuteAndWait(*compiler, {*compiler, "-O1", "-static", source, object, "-o", program, "-lm"}),
            0);
  EXPECT_EQ(llvm::sys::ExecuteAndWait(*emulator, {*emulator, program}), 0);
  llvm::sys::fs::remove_directories(folder);
}

} // namespace
