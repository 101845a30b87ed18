// Tests the errors of the GPU's elementary functions on the CPU, with the worst errors of the special function unit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/ExpandMath.h"
#include "dialect/lower/math/VectorMath.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "test/dialect/lower/cpu/HostJit.h"
#include "test/dialect/lower/math/MathErrors.h"
#include "llvm/ADT/StringSwitch.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace kpkg;
using test::Build;
using test::ulps;
using test::unary;

namespace {

/// The error that the emulated unit adds to a correctly rounded result.
enum class Unit { Exact, Low, High };

/// Replaces the intrinsics by host arithmetic, with results off by as many units in the last place as PTX allows.
void emulateUnit(ModuleOp module, Unit unit) {
  module.walk([&](LLVM::CallIntrinsicOp call) {
    ImplicitLocOpBuilder b(call.getLoc(), call);
    StringRef name = call.getIntrin();
    SmallVector<Value> wide;
    for (Value operand : call.getArgs())
      wide.push_back(arith::ExtFOp::create(b, b.getF64Type(), operand));
    auto number = [&](double value) -> Value { return arith::ConstantOp::create(b, b.getF64FloatAttr(value)); };
    Value result;
    int error = 0;
    if (name.contains("ex2")) {
      result = math::Exp2Op::create(b, wide[0]);
      error = 2;
    } else if (name.contains("rsqrt")) {
      result = arith::DivFOp::create(b, number(1), math::SqrtOp::create(b, wide[0]));
      error = 2;
    } else if (name.contains("rcp")) {
      result = arith::DivFOp::create(b, number(1), wide[0]);
      error = 1;
    } else if (name.contains("div.full")) {
      result = arith::DivFOp::create(b, wide[0], wide[1]);
      error = 2;
    } else {
      ASSERT_EQ(name, "llvm.nvvm.fma.rn.sat.f");
      result = math::FmaOp::create(b, wide[0], wide[1], wide[2]);
      result = arith::MaxNumFOp::create(b, arith::MinNumFOp::create(b, result, number(1)), number(0));
    }
    Value rounded = arith::TruncFOp::create(b, b.getF32Type(), result);
    if (name.contains(".ftz")) {
      Value smallest = arith::ConstantOp::create(b, b.getF32FloatAttr(0x1p-126f)),
            zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
      Value isDenormal =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, rounded), smallest);
      rounded = arith::SelectOp::create(b, isDenormal, zero, rounded);
    }
    if (unit != Unit::Exact && error != 0) {
      // Units in the last place are steps of the bit pattern. Zero, infinity, NaN and denormals stay.
      Value bits = arith::BitcastOp::create(b, b.getI32Type(), rounded);
      auto integer = [&](int64_t value) -> Value { return arith::ConstantOp::create(b, b.getI32IntegerAttr(value)); };
      Value moved = arith::AddIOp::create(b, bits, integer(unit == Unit::Low ? -error : error));
      // A step across a power of two would count double.
      Value crossed = arith::AndIOp::create(b, arith::XOrIOp::create(b, bits, moved), integer(0x7f800000));
      Value kept = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, crossed, integer(0));
      Value special = arith::CmpIOp::create(b, arith::CmpIPredicate::uge,
                                            arith::AndIOp::create(b, bits, integer(0x7fffffff)), integer(0x7f800000));
      Value denormal = arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                             arith::AndIOp::create(b, bits, integer(0x7fffffff)), integer(0x800000));
      Value fixed = arith::OrIOp::create(b, arith::OrIOp::create(b, kept, special), denormal);
      rounded = arith::BitcastOp::create(b, b.getF32Type(), arith::SelectOp::create(b, fixed, bits, moved));
    }
    call.replaceAllUsesWith(ValueRange(rounded));
    call.erase();
  });
}

struct Case {
  const char *name;
  Build build;
  long double (*exact)(long double);
  double measured, worst;
  float low, high;
};

Value reciprocal(OpBuilder &b, Location loc, Value x) {
  Value one = arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getFloatAttr(x.getType(), 1)));
  return arith::DivFOp::create(b, loc, one, x, arith::FastMathFlags::arcp);
}

const Case cases[] = {
    {"reciprocal", reciprocal, [](long double x) { return std::fabs(x) > 0x1p126L ? std::copysign(0.0L, x) : 1 / x; },
     0.5001, 1.5001, -100, 100},
    {"exp", unary<math::ExpOp>, expl, 1.0, 3.0, -105, 90},
    {"exp2", unary<math::Exp2Op>, [](long double x) { return x < -126 ? 0 : exp2l(x); }, 0.5001, 2.5001, -152, 130},
    {"tanh", unary<math::TanhOp>, tanhl, 1.4, 1.7, -12, 12},
    {"rsqrt", unary<math::RsqrtOp>, [](long double x) { return x == 0 ? copysignl(INFINITY, x) : 1 / sqrtl(x); },
     0.5001, 2.5001, 0, 10},
    {"erf", unary<math::ErfOp>, erfl, 1.4, 1.7, -5, 5},
    {"log", unary<math::LogOp>, logl, 1, 1, 0, 10},
    {"log2", unary<math::Log2Op>, log2l, 1, 1, 0, 10},
    {"sin", unary<math::SinOp>, sinl, 1, 1, -1000, 1000},
};

double largestError(const Case &test, Unit unit) {
  std::unique_ptr<MLIRContext> context = test::makeContext();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context.get()));
  test::addFunction(*module, "f", test.build, /*wide=*/false, /*lanes=*/1);
  lower::nvvm::expandMath(*module);
  emulateUnit(*module, unit);
  // The f64 emulation of the unit needs its own expansion.
  EXPECT_TRUE(succeeded(lower::expandVectorMath(*module)));
  test::lowerToLLVMDialect(*module);
  test::HostJit jit(*module);
  auto *code = jit.find<void(const void *, const void *, void *, int64_t)>("f");

  std::vector<float> x = {0,          -0.0f,      1,       -1,       INFINITY,  -INFINITY, NAN,      0x1p-126f,
                          -0x1p-126f, 0x1p-149f,  3.4e38f, -3.4e38f, 88.72283f, 88.7229f,  -103.97f, -103.98f,
                          128,        127.99999f, -149,    -149.99f, -150.001f, 0.8f,      0.79999f, 0x1.62e42ep6f,
                          1e-20f,     -1e-20f};
  std::mt19937 random(1);
  std::uniform_real_distribution<float> dense(test.low, test.high), exponent(-30, 3);
  for (int i = 0; i < 150000; ++i) {
    x.push_back(dense(random));
    float small = std::exp2(exponent(random));
    x.push_back(test.low < 0 && i % 2 ? -small : small);
  }
  std::vector<float> result(x.size());
  code(x.data(), x.data(), result.data(), int64_t(x.size()));
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double error = ulps(result[i], test.exact(static_cast<long double>(x[i])));
    if (error > largest) {
      largest = error;
      if (error > (unit == Unit::Exact ? test.measured : test.worst))
        ADD_FAILURE() << test.name << "(" << x[i] << ") is " << result[i] << ", not "
                      << double(test.exact(static_cast<long double>(x[i])));
    }
  }
  return largest;
}

TEST(ExpandMath, Errors) {
  for (const Case &test : cases) {
    SCOPED_TRACE(test.name);
    double exact = largestError(test, Unit::Exact), low = largestError(test, Unit::Low),
           high = largestError(test, Unit::High);
    EXPECT_LE(exact, test.measured);
    EXPECT_LE(std::max(low, high), test.worst);
  }
}

} // namespace
